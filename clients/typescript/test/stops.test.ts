import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, defineJob } from "@jobline/client";
import { Record, WorkerProcess } from "./processes.js";
import { clientOf, ServerProcess, TestLogger, until, workerOf } from "./server.js";

let server: ServerProcess;
let client: Client;

before(async () => {
  server = await ServerProcess.start();
  client = clientOf(server);
});

after(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

test("a drain finishes what runs, gives back the rest, loses and repeats nothing", async () => {
  const kind = defineJob<number, number>({ queue: "drained", maxStalls: 0 });
  const runs = new Map<bigint, number>();
  const make = () =>
    workerOf(server, { concurrency: 4, window: 40 }).handle(kind, async (n, { id }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      await sleep(10);
      return n;
    });
  const pushed = await client.pushMany(
    kind,
    Array.from({ length: 200 }, (_, index) => index),
  );
  for (let stops = 0; runs.size < 200; stops += 1) {
    const worker = make();
    await worker.start();
    await sleep(60);
    await worker.stop();
    assert.ok(stops < 100, "it makes headway");
  }
  for await (const end of client.waitAll(pushed.map(({ id }) => id))) assert.equal(end.state, "completed");
  assert.deepEqual([...new Set(runs.values())], [1]);
});

test("a stop aborts handlers after the soft stop, and gives back those that ignore it", async () => {
  const kind = defineJob<string>({ queue: "stopped" });
  const logger = new TestLogger();
  const options = { softStop: "50ms", hardStop: "50ms", logger };
  let aborted = 0;
  const worker = workerOf(server, options).handle(kind, async (what, { signal }) => {
    signal.addEventListener("abort", () => {
      aborted += 1;
    });
    await sleep(1_000, undefined, what === "deaf" ? {} : { signal });
  });
  await worker.start();
  const pushed = await Promise.all(["deaf", "polite"].map((what) => client.push(kind, what)));
  await until("both run", () => worker.stats.running === 2);
  await worker.stop();
  assert.equal(aborted, 2);
  assert.ok(logger.has("did not stop in time"));
  for (const { id } of pushed) {
    const { job } = await client.admin.jobs.getJob({ job: { case: "id", value: id } });
    assert.deepEqual([job?.state, job?.releases, job?.attempts, job?.stalls], [3, 1, 0, 0]);
  }
});

test("SIGTERM at any moment of a worker: exit code 0, nothing lost, nothing run twice", async () => {
  using record = new Record();
  const kind = defineJob<number>({ queue: "terms", maxStalls: 0 });
  const pushed = await client.pushMany(
    kind,
    Array.from({ length: 300 }, (_, index) => index),
  );
  const ids = pushed.map(({ id }) => String(id));
  for (let terms = 0; new Set(record.ended).size < ids.length; terms += 1) {
    assert.ok(terms < 60, "it makes headway");
    await using worker = new WorkerProcess(server, "terms", record);
    const before = record.notes.length;
    if (terms % 3 > 0) await until("it works", () => record.notes.length > before);
    await sleep(Math.random() * 120);
    const code = await worker.end("SIGTERM");
    // Before its first line of code ran, the default of the signal ends the process.
    assert.ok(code === 0 || code === "SIGTERM", `${code}: ${worker.log}`);
  }
  assert.deepEqual(record.ended.sort(), ids.sort());
  for await (const end of client.waitAll(pushed.map(({ id }) => id))) assert.equal(end.state, "completed");
});

test("a killed worker's jobs run again after their lease; nothing is lost", async () => {
  using record = new Record();
  const kind = defineJob<number>({ queue: "killed", lease: "1s" });
  const pushed = await client.pushMany(
    kind,
    Array.from({ length: 100 }, (_, index) => index),
  );
  {
    await using worker = new WorkerProcess(server, "killed", record);
    await until("it works", () => record.ended.length > 10);
    await worker.end("SIGKILL");
  }
  await using _ = new WorkerProcess(server, "killed", record);
  for await (const end of client.waitAll(pushed.map(({ id }) => id))) assert.equal(end.state, "completed");
  assert.equal(new Set(record.ended).size, 100);
});
