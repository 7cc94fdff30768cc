// bunqueue, through its TCP port; it needs Bun. The variant "durable" asks for that of each job.

import { Queue, Worker } from "bunqueue/client";
import { countdown, payload } from "./load.js";

const NAME = "bench";
const CONCURRENCY = 200;

export async function open({ host, port, queue: name, variant }) {
  const connection = { host, port };
  const options = { removeOnComplete: true, durable: variant === "durable" };
  const queue = new Queue(name, { connection });
  return {
    push: () => queue.add(NAME, { payload }, options),
    bulk: (count) =>
      queue.addBulk(Array.from({ length: count }, () => ({ name: NAME, data: { payload }, opts: options }))),
    waiting: async () => {
      const counts = await queue.getJobCountsAsync();
      return counts.waiting + counts.active;
    },
    drain: async (jobs) => {
      const { tick, over } = countdown(jobs);
      new Worker(name, async () => tick(), { connection, concurrency: CONCURRENCY });
      await over;
    },
  };
}
