import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { defineJob, FlowJob, JobCancelled, WaitFor } from "@jobline/client";
import { LogLevel } from "@jobline/client/v1";
import { serverAndClient, storedJob, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

test("progress, log, partial and checkpoint reach the server before the outcome", async () => {
  const steps = defineJob<null, string>({ queue: "steps", backoff: { delays: ["10ms"] } });
  await using worker = workerOf(server).handle(steps, (_, context) => {
    const saved = context.checkpoint<{ at: number }>();
    if (saved) return `from ${saved.at}`;
    context.saveCheckpoint({ at: 7 });
    context.progress(40, "at it");
    context.log("a line", "warning");
    context.partial("piece");
    throw new Error("half way");
  });
  await worker.start();
  const { id } = await client.push(steps, null);
  assert.equal(await client.result(steps, id), "from 7");
  const { lines } = await client.admin.jobs.getJobLogs({ id });
  assert.deepEqual(
    lines.map(({ text, level }) => [text, level]),
    [["a line", LogLevel.WARNING]],
  );
  assert.equal((await storedJob(client, id)).progressMessage, "at it");
});

test("phases are finished once, and a retry starts at the next one", async () => {
  const phased = defineJob<null, string>({
    queue: "phased",
    phases: ["one", "two"],
    backoff: { delays: ["10ms"] },
  });
  const begun: (string | undefined)[] = [];
  await using worker = workerOf(server).handle(phased, (_, context) => {
    begun.push(context.phase);
    if (context.phase === "one") {
      context.finishPhase("one", { rows: 3 });
      throw new Error("between");
    }
    context.finishPhase("two");
    return Buffer.from(context.job.phaseResults[0] ?? []).toString();
  });
  await worker.start();
  assert.equal(await client.pushAndWait(phased, null), '{"rows":3}');
  assert.deepEqual(begun, ["one", "two"]);
});

test("revoke: an abort reaches the handler of a cancelled job", async () => {
  const long = defineJob({ queue: "long" });
  const reasons: unknown[] = [];
  await using worker = workerOf(server).handle(long, async (_, { signal: stop }) => {
    stop.addEventListener("abort", () => reasons.push(stop.reason));
    await sleep(60_000, undefined, { signal: stop });
  });
  await worker.start();
  const { id } = await client.push(long, null);
  await until("it runs", () => worker.stats.running === 1);
  await client.admin.jobs.cancelJobs({ jobs: { ids: [id] }, reason: "no" });
  await assert.rejects(client.result(long, id), JobCancelled);
  assert.match(String(reasons[0]), /cancelled/);
});

test("the attempt's timeout fires the signal, and the attempt has failed", async () => {
  const slow = defineJob<null, string>({
    queue: "slow",
    attemptTimeout: "1s",
    backoff: { delays: ["10ms"] },
  });
  await using worker = workerOf(server).handle(slow, async (_, context) => {
    if (context.attempt > 1) return "second";
    assert.ok(context.deadline && context.deadline.getTime() - Date.now() < 1_001);
    await sleep(60_000, undefined, { signal: context.signal });
    return "never";
  });
  await worker.start();
  const { id } = await client.push(slow, null);
  assert.equal(await client.result(slow, id), "second");
  assert.equal((await storedJob(client, id)).history[0]?.error?.type, "timeout");
});

test("spawn pushes once however often the job is retried", async () => {
  const parent = defineJob<null, string>({ queue: "parents", backoff: { delays: ["10ms"] } });
  const ids: bigint[] = [];
  await using worker = workerOf(server).handle(parent, async (_, context) => {
    ids.push((await context.spawn("spawned", { n: 1 })).id);
    if (context.attempt === 1) throw new Error("after the spawn");
    return "done";
  });
  await worker.start();
  assert.equal(await client.pushAndWait(parent, null), "done");
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
});

test("WaitFor: the job is called anew with the results of its children", async () => {
  const parent = defineJob<number[], number>({ queue: "sums" });
  const child = defineJob<number, number>({ queue: "squares" });
  await using worker = workerOf(server)
    .handle(child, (n) => n * n)
    .handle(parent, async (numbers, context) => {
      if (context.reason !== "children_ended") {
        context.saveCheckpoint("asked");
        throw new WaitFor(...numbers.map((n) => FlowJob.of(child, n)));
      }
      assert.equal(context.checkpoint(), "asked");
      const children = await context.children();
      return children.reduce((sum, { result }) => sum + Number(Buffer.from(result)), 0);
    });
  await worker.start();
  assert.equal(await client.pushAndWait(parent, [1, 2, 3]), 14);
});
