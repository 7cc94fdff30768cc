/** A worker in a process of its own, which tests signal and kill: `node program.js ADDRESS QUEUE RECORD`. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "@jobline/client";

const [target = "", queue = "", record = ""] = process.argv.slice(2);

/** Each line is on the file before the handler goes on: a kill loses none. */
function note(what: string, id: bigint, delivery: bigint): void {
  appendFileSync(record, `${what} ${id} ${delivery} ${process.pid} ${Date.now()}\n`);
}

const worker = new Worker({ target, signals: ["SIGTERM"], concurrency: 8, softStop: "5s", hardStop: "1s" });
worker.handle<number, string>(queue, async (_, { id, delivery, signal }) => {
  note("begin", id, delivery);
  await sleep(Math.random() * 20, undefined, { signal });
  note("end", id, delivery);
  return "done";
});
worker.handleBatch<number, string>(`${queue}.batch`, { size: 5, wait: "10ms" }, async (items) => {
  for (const { context } of items) note("begin", context.id, context.delivery);
  await sleep(Math.random() * 20, undefined, { signal: items[0]?.context.signal });
  for (const { context } of items) note("end", context.id, context.delivery);
  return items.map(() => "done");
});
await worker.run();
