import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, defineJob, JoblineError, OutcomeUnknown } from "@jobline/client";
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

/** Blocks the event loop: timers, sockets and promises stand still. */
function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

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

test("a handler that blocks the event loop for longer than its lease keeps it", async () => {
  const kind = defineJob<number, string>({ queue: "blocked", lease: "1s", maxStalls: 0 });
  const runs: bigint[] = [];
  await using worker = workerOf(server, { concurrency: 2 }).handle(kind, (ms, { id, reason }) => {
    runs.push(id);
    block(ms);
    return reason;
  });
  await worker.start();
  const { id } = await client.push(kind, 4_000);
  assert.equal(await client.result(kind, id), "first");
  assert.deepEqual(runs, [id]);
  assert.equal(worker.stats.lost, 0);
});

test("the server is killed 5 times under load: nothing lost, nothing run twice, all go on by themselves", async () => {
  await using own = await ServerProcess.start();
  await using producer = clientOf(own, { timeout: "60s" });
  const kind = defineJob<number, number>({ queue: "kills", lease: "30s" });
  const runs = new Map<bigint, Set<bigint>>();
  await using worker = workerOf(own, { concurrency: 16 }).handle(kind, async (n, { id, delivery }) => {
    const seen = runs.get(id) ?? new Set();
    runs.set(id, seen.add(delivery));
    await sleep(Math.random() * 5);
    return n;
  });
  await worker.start();
  const pushed: { id: bigint }[] = [];
  let isOver = false;
  const producers = Array.from({ length: 16 }, async (_, caller) => {
    for (let n = 0; !isOver; n += 1) {
      pushed.push(await producer.push(kind, caller * 1_000_000 + n));
      await sleep(1);
    }
  });
  for (let kills = 0; kills < 5; kills += 1) {
    await sleep(100 + Math.random() * 300);
    await own.restart();
    const count = pushed.length;
    await until(`pushes go on after kill ${kills}`, () => pushed.length > count + 50);
  }
  isOver = true;
  await Promise.all(producers);
  const ids = pushed.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "no answer named a job twice");
  const states = new Set<string>();
  for await (const end of producer.waitAll(ids)) states.add(end.state);
  assert.deepEqual([...states], ["completed"]);
  const { queue } = await producer.admin.queues.getQueue({ queue: "kills" });
  assert.ok(queue);
  assert.ok(runs.size >= ids.length);
  // A lease that was valid at the kill is valid after it: the same worker has it, and runs it once. What
  // was handed out and settled while the disk had neither may go out again, under a newer delivery.
  for (const [id, deliveries] of runs) assert.equal(deliveries.size, 1, `job ${id} ran once`);
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

test("a push whose answer is lost is asked for again, and stored once", async () => {
  await using own = await ServerProcess.start();
  await using producer = clientOf(own, { timeout: "30s" });
  await producer.push("frozen", 0);
  own.signal("SIGSTOP"); // it has the call, and does not answer
  const pushes = Promise.all([1, 2, 3].map((n) => producer.push("frozen", n)));
  await sleep(6_000);
  own.signal("SIGCONT");
  const ids = (await pushes).map(({ id }) => id);
  assert.equal(new Set(ids).size, 3);
  const { jobs } = await producer.admin.jobs.listJobs({ filter: { queue: "frozen" } });
  assert.equal(jobs.length, 4);
});

test("without an answer in time the outcome is unknown, and worth another try", async () => {
  await using own = await ServerProcess.start();
  await using producer = clientOf(own, { timeout: "600ms" });
  await producer.push("silent", 0);
  own.signal("SIGSTOP");
  await assert.rejects(producer.push("silent", 1), (error: OutcomeUnknown) => {
    assert.ok(error instanceof OutcomeUnknown, String(error));
    return error.retryable && !error.definite;
  });
  await own.kill();
  await assert.rejects(producer.admin.queues.getQueue({ queue: "silent" }), (error: JoblineError) => {
    return error instanceof JoblineError && error.retryable;
  });
});
