/**
 * The worker of this client among those of other languages, for `tests/faults/test_three_languages.py`:
 * `node mixed_program.js ADDRESS QUEUE RECORD`. The payload is how many milliseconds a job takes.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "@jobline/client";

const [target = "", queue = "", record = ""] = process.argv.slice(2);

const worker = new Worker({ target, signals: ["SIGTERM"], concurrency: 4 });
worker.handle<number, string>(queue, async (milliseconds, { id, delivery, signal }) => {
  const note = (what: string) => appendFileSync(record, `${what} ${id} ${delivery} ${Date.now()}\n`);
  note("begin");
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch (error) {
    note("stop");
    throw error;
  }
  note("end");
  return "typescript";
});
await worker.run();
