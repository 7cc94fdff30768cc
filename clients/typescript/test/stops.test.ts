import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { defineJob, type JobOptions, Worker } from "@jobline/client";
import { type Job, StreamRequestSchema } from "@jobline/client/v1";
import { confirmAll, fakeServer, say } from "./fake_server.js";
import { Record, WorkerProcess } from "./processes.js";
import { serverAndClient, storedJob, TestLogger, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

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
    Array.from({ length: 100 }, (_, index) => index),
  );
  for (let stops = 0; runs.size < 100; stops += 1) {
    const worker = make();
    await worker.start();
    await sleep(60);
    await worker.stop();
    assert.ok(stops < 100, "it makes headway");
  }
  for await (const end of client.waitAll(pushed.map(({ id }) => id))) assert.equal(end.state, "completed");
  assert.deepEqual([...new Set(runs.values())], [1]);
});

test("a job that was on its way at the drain is given back before the stream is half-closed", async () => {
  const released: bigint[] = [];
  const target = await fakeServer({
    Stream: (call) => {
      call.on("data", (bytes: Buffer) => {
        const { drain, settles } = fromBinary(StreamRequestSchema, bytes);
        for (const { releases } of settles) released.push(...releases.map(({ id }) => id));
        const payloads = [Buffer.from("1")];
        if (drain)
          say(call, { runs: [{ firstId: 7n, delivery: 1n, leaseMs: 30_000n, queue: "q", payloads }] });
      });
      confirmAll(call);
      say(call, { opened: { session: "s", heartbeatInterval: { seconds: 10n } } });
    },
  });
  const worker = new Worker({ target, logger: new TestLogger() }).handle("q", () => assert.fail("it began"));
  await worker.start();
  await worker.stop();
  assert.deepEqual(released, [7n]);
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
    const job = await storedJob(client, id);
    assert.deepEqual([job.state, job.releases, job.attempts, job.stalls], [3, 1, 0, 0]);
  }
});

/** How often a worker is stopped at a random moment, each way: STOP_ROUNDS=50 tries more of them. */
const ROUNDS = Number(process.env.STOP_ROUNDS ?? 3);

/** Stops workers at random moments, jobs and batches at work; returns what that has cost, over all jobs. */
async function stopAtRandom(signal: "SIGTERM" | "SIGKILL", options: JobOptions) {
  using record = new Record();
  const queue = `random-${signal}`;
  const kinds = [queue, `${queue}.batch`].map((name) => defineJob<number>({ ...options, queue: name }));
  const pushed: bigint[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const kind of kinds) {
      const jobs = await client.pushMany(
        kind,
        Array.from({ length: 40 }, (_, index) => index),
      );
      pushed.push(...jobs.map(({ id }) => id));
    }
    await using worker = new WorkerProcess(server, queue, record);
    const before = record.notes.length;
    if (round % 4 > 0) await until("it works", () => record.notes.length > before);
    await sleep(Math.random() * 150);
    const code = await worker.end(signal);
    // Before its first line of code ran, the default of the signal ends the process.
    assert.ok(code === 0 || code === signal, `${code}: ${worker.log}`);
  }
  await using _ = new WorkerProcess(server, queue, record);
  for await (const end of client.waitAll(pushed)) assert.equal(end.state, "completed");
  const jobs = await jobsOf(kinds.map((kind) => kind.queue));
  assert.equal(jobs.length, pushed.length);
  const sum = (of: "attempts" | "stalls" | "releases") => jobs.reduce((total, job) => total + job[of], 0);
  const begun = record.notes.filter(({ what }) => what === "begin").length;
  return {
    jobs: jobs.length,
    begunAgain: begun - jobs.length,
    endedAgain: record.ended.length - jobs.length,
    ...{ attempts: sum("attempts"), stalls: sum("stalls"), releases: sum("releases") },
  };
}

async function jobsOf(queues: readonly string[]): Promise<Job[]> {
  const found: Job[] = [];
  for (const queue of queues) {
    for (let pageToken = ""; ; ) {
      const page = await client.admin.jobs.listJobs({ filter: { queue }, pageSize: 1_000, pageToken });
      found.push(...page.jobs);
      pageToken = page.nextPageToken;
      if (!pageToken) break;
    }
  }
  return found;
}

test("SIGTERM at random moments costs no job a repeat, an attempt or a stall, and loses none", async (t) => {
  const { jobs, releases, ...cost } = await stopAtRandom("SIGTERM", { maxStalls: 0, maxAttempts: 1 });
  t.diagnostic(`${ROUNDS} times SIGTERM: ${JSON.stringify({ jobs, releases, ...cost })}`);
  assert.deepEqual(cost, { begunAgain: 0, endedAgain: 0, attempts: 0, stalls: 0 });
});

test("SIGKILL at random moments loses no job, and uses up no attempt", async (t) => {
  const { attempts, ...cost } = await stopAtRandom("SIGKILL", {
    lease: "1s",
    maxStalls: 100,
    maxAttempts: 1,
  });
  t.diagnostic(`${ROUNDS} times SIGKILL: ${JSON.stringify({ ...cost, attempts })}`);
  assert.equal(attempts, 0);
});
