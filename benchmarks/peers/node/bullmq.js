// BullMQ: jobs are deleted when they have ended, as queues of that kind are run.

import { Queue, Worker } from "bullmq";
import { countdown, payload } from "./load.js";

const NAME = "bench";
const OPTIONS = { removeOnComplete: true };
const CONCURRENCY = 200;

export async function open({ host, port, queue: name }) {
  const connection = { host, port, maxRetriesPerRequest: null };
  const queue = new Queue(name, { connection, defaultJobOptions: OPTIONS });
  await queue.waitUntilReady();
  return {
    push: () => queue.add(NAME, { payload }),
    bulk: (count) => queue.addBulk(Array.from({ length: count }, () => ({ name: NAME, data: { payload } }))),
    waiting: async () => (await queue.getWaitingCount()) + (await queue.getActiveCount()),
    drain: async (jobs) => {
      const { tick, over } = countdown(jobs);
      new Worker(name, async () => tick(), { connection, concurrency: CONCURRENCY });
      await over;
    },
  };
}
