/** What handlers throw, however odd, and what failures in a row do to a worker. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, InvalidArgument, JobDead } from "@jobline/client";
import { failureOf } from "../src/worker/settling.js";
import { serverAndClient, storedJob, TestLogger, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

const raise = (): never => {
  throw new Error("a trap");
};
/** A thing of which nothing can be asked: each trap throws. */
const hostile = (target: object = {}): object =>
  new Proxy(target, {
    getPrototypeOf: raise,
    get: raise,
    has: raise,
    ownKeys: raise,
    getOwnPropertyDescriptor: raise,
  });
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const unreadable = new Proxy(new Error("hidden"), { get: raise });
const oddlyNamed = Object.assign(new Error("odd"), {
  name: 5,
  message: { of: "an object" },
  stack: Symbol("s"),
});

/** Odd things to throw, and the type of the error that is kept. */
const ODD: Record<string, [thrown: () => unknown, type: string]> = {
  proxy: [() => hostile(), "object"],
  function: [() => hostile(() => undefined), "function"],
  revoked: [revoked, "object"],
  unreadable: [() => unreadable, "Error"],
  named: [() => oddlyNamed, "5"],
  null: [() => null, "object"],
  undefined: [() => undefined, "undefined"],
  symbol: [() => Symbol("s"), "symbol"],
  bare: [() => Object.create(null), "object"],
  bigint: [() => 5n, "bigint"],
};

test("whatever a handler throws fails its attempt, and the worker goes on", async () => {
  const kind = defineJob<string, string>({ queue: "odd", maxAttempts: 1 });
  const later = defineJob<string, string>({ queue: "odd-later", maxAttempts: 1 });
  const together = defineJob<string, string>({ queue: "odd-batches", maxAttempts: 1 });
  const whole = defineJob<string, string>({ queue: "odd-answers", maxAttempts: 1 });
  const oddOf = (what: string) => {
    const [made] = ODD[what] ?? [];
    return made?.();
  };
  await using worker = workerOf(server)
    .handle(kind, (what) => {
      if (what in ODD) throw oddOf(what);
      return what;
    })
    .handle(later, async (what) => {
      throw oddOf(what);
    })
    .handleBatch(together, { size: 1 }, ([item]) => {
      throw oddOf(item?.payload ?? "");
    })
    .handleBatch(whole, { size: 1 }, () => revoked() as never);
  await worker.start();
  for (const [what, [, type]] of Object.entries(ODD)) {
    const pushed = await Promise.all([kind, later, together].map((one) => client.push(one, what)));
    for (const { id } of pushed) {
      await assert.rejects(client.result("odd", id, { timeout: "10s" }), JobDead, what);
      assert.equal((await storedJob(client, id)).error?.type, type, what);
    }
  }
  const answered = await client.push(whole, "an answer that nothing can be asked of");
  await assert.rejects(client.result(whole, answered.id, { timeout: "10s" }), JobDead);
  assert.equal(await client.pushAndWait(kind, "the next"), "the next");
  assert.equal(worker.stats.running, 0);
});

test("a handler that is told to stop may throw odd things, too", async () => {
  const kind = defineJob({ queue: "odd-stops", maxAttempts: 1 });
  let running = 0;
  await using worker = workerOf(server).handle(kind, async (_, context) => {
    running += 1;
    await sleep(60_000, undefined, { signal: context.signal }).catch(() => undefined);
    assert.ok(!context.isStop(hostile()) && !context.isStop(unreadable));
    assert.ok(failureOf(context, hostile()));
    throw hostile();
  });
  await worker.start();
  const { id } = await client.push(kind, null);
  await until("it runs", () => running === 1);
  await client.admin.jobs.cancelJobs({ jobs: { ids: [id] }, reason: "no" });
  await assert.rejects(client.result(kind, id, { timeout: "10s" }));
  await until("it has ended", () => worker.stats.running === 0);
});

test("after failures in a row a worker pauses, and gives back what it has not begun", async () => {
  const kind = defineJob<number>({ queue: "down", maxAttempts: 1, maxStalls: 0 });
  const logger = new TestLogger();
  const options = { pauseAfterFailures: 3, failurePause: "200ms", concurrency: 1, window: 20, logger };
  let isDown = true;
  let isFirst = true;
  await using worker = workerOf(server, options).handle(kind, async () => {
    if (isFirst) {
      isFirst = false; // a success, which begins the count anew
    } else if (isDown) {
      throw new Error("the database is down");
    }
  });
  const jobs = Array.from({ length: 20 }, (_, index) => index);
  const pushed = await client.pushMany(kind, jobs);
  await worker.start();
  await until("it pauses", () => worker.stats.paused);
  await until("what has not begun is given back", () => worker.stats.waiting === 0);
  assert.deepEqual([worker.stats.done, worker.stats.failed, worker.stats.window], [1, 3, 0]);
  await until("after the pause one more failure is enough", () => worker.stats.failed === 4);
  isDown = false;
  await until("it takes jobs again", () => worker.stats.done === 16);
  const states: { [state: string]: number } = {};
  for await (const { state } of client.waitAll(pushed.map(({ id }) => id)))
    states[state] = (states[state] ?? 0) + 1;
  assert.deepEqual(states, { completed: 16, dead: 4 });
  assert.ok(logger.has("3 attempts in a row have failed: no jobs are taken for 0.2 s"));
  assert.throws(() => workerOf(server, { pauseAfterFailures: 0 }), InvalidArgument);
});

test("attempts that take too long count as failures, each once, however their handlers end", async () => {
  const kind = defineJob<string>({ queue: "slow", maxAttempts: 1, attemptTimeout: "1s" });
  const logger = new TestLogger();
  const options = { pauseAfterFailures: 4, failurePause: "60s", concurrency: 4, logger };
  await using worker = workerOf(server, options).handle(kind, async (what, { signal }) => {
    if (what === "fails") throw new Error("at once");
    if (what === "deaf") return sleep(1_500, undefined); // too late to be a success
    await sleep(60_000, undefined, { signal }).catch((error) => {
      throw what === "polite" ? error : new Error("its own words");
    });
  });
  await worker.start();
  const slow = await client.pushMany(kind, ["polite", "own words", "deaf"]);
  for await (const { state } of client.waitAll(slow.map(({ id }) => id))) assert.equal(state, "dead");
  await until("all handlers have ended", () => worker.stats.running === 0);
  assert.ok(!worker.stats.paused, "three have failed");
  await client.push(kind, "fails");
  await until("the fourth is enough", () => worker.stats.paused);
  assert.ok(logger.has("4 attempts in a row have failed"));
});
