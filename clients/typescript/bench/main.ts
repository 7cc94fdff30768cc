/** Measures the client beside a real server: `make ts-bench`. The figures stand in the README. */
import { type Client, defineJob, Worker } from "@jobline/client";
import { clientOf, ServerProcess, until } from "../test/server.js";

const JOBS = Number(process.env.JOBS ?? 200_000);
const PUSHES = Number(process.env.PUSHES ?? 60_000);
const CALLERS = 64;
const PAYLOAD = Buffer.alloc(100, "x");

const bytes = defineJob<Uint8Array>({ queue: "bench", codec: "bytes" });

function show(what: string, count: number, began: number): void {
  const seconds = (performance.now() - began) / 1_000;
  const rate = Math.round(count / seconds).toLocaleString("en");
  process.stdout.write(`${what}: ${rate}/s (${count.toLocaleString("en")} in ${seconds.toFixed(2)} s)\n`);
}

async function measureWorker(server: ServerProcess, client: Client): Promise<void> {
  for (let left = JOBS; left > 0; left -= 10_000) {
    await client.pushMany(bytes, Array<Uint8Array>(Math.min(left, 10_000)).fill(PAYLOAD));
  }
  await using worker = new Worker({ target: server.address, concurrency: 16 });
  worker.handle(bytes, () => undefined);
  await worker.start();
  const began = performance.now();
  const before = worker.stats.done;
  await until("all jobs are done", () => worker.stats.done >= JOBS, 120);
  show("worker, a handler that returns at once, jobs", JOBS - before, began);
}

async function measurePushes(client: Client): Promise<void> {
  let left = PUSHES;
  const began = performance.now();
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      await client.push(bytes, PAYLOAD);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  show(`push, one job a call, ${CALLERS} callers, calls`, PUSHES, began);
}

await using server = await ServerProcess.start();
await using client = clientOf(server);
await measureWorker(server, client);
await measurePushes(client);
