import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Context, defineJob, JoblineError, OutcomeUnknown } from "@jobline/client";

import { clientOf, ServerProcess, serverAndClient, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

/** Blocks the event loop: timers, sockets and promises stand still. */
function block(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

test("a handler that blocks the event loop for longer than its lease keeps it", async () => {
  const kind = defineJob<number, string>({ queue: "blocked", lease: "1s", maxStalls: 0 });
  const runs: bigint[] = [];
  await using worker = workerOf(server, { concurrency: 2 }).handle(kind, (ms, { id, reason }) => {
    runs.push(id);
    block(ms);
    return reason;
  });
  await worker.start();
  const { id } = await client.push(kind, 3_000);
  assert.equal(await client.result(kind, id), "first");
  assert.deepEqual(runs, [id]);
  assert.equal(worker.stats.lost, 0);
});

/** How often the server is killed under load: KILL_ROUNDS=50 tries more. */
const KILLS = Number(process.env.KILL_ROUNDS ?? 3);

test("the server is killed again and again under load: nothing lost, nothing run twice, all go on by themselves", async () => {
  await using own = await ServerProcess.start();
  await using producer = clientOf(own, { timeout: "300s" });
  const kind = defineJob<number, number>({ queue: "kills", lease: "30s" });
  const runs = new Map<bigint, Context<undefined>[]>();
  const running = new Set<Context<undefined>>();
  const atOnce: bigint[] = [];
  await using worker = workerOf(own, { concurrency: 16 }).handle(kind, async (n, context) => {
    const earlier = runs.get(context.id) ?? [];
    // A lease that was handed out just before a kill may not be on disk. Then its job goes out again, under
    // a newer delivery, and the handler of the old one was told to stop.
    const isAtOnce = earlier.some((run) => running.has(run) && !run.cancelReason);
    if (isAtOnce || earlier.some(({ delivery }) => delivery >= context.delivery)) atOnce.push(context.id);
    runs.set(context.id, [...earlier, context]);
    running.add(context);
    await sleep(Math.random() * 5);
    running.delete(context);
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
  for (let kills = 0; kills < KILLS; kills += 1) {
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
  assert.ok(runs.size >= ids.length);
  assert.deepEqual(atOnce, []);
  const again = [...runs.values()].filter((all) => all.length > 1).length;
  assert.ok(again <= KILLS * 200, `${again} jobs ran again: those that were at hand at a kill`);
});

test("a push whose answer is lost is asked for again, and stored once", async () => {
  await using own = await ServerProcess.start();
  await using producer = clientOf(own, { timeout: "6s" }); // a try takes a third of it
  await producer.push("frozen", 0);
  own.signal("SIGSTOP"); // it has the call, and does not answer
  const pushes = Promise.all([1, 2, 3].map((n) => producer.push("frozen", n)));
  await sleep(2_500);
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
