/** The pure part of pushes that share calls. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferFull } from "@jobline/client";
import { type Batch, NOTHING, type Own, type Push } from "../src/push/batch.js";
import { type BatchLimits, PushBatcher } from "../src/push/batcher.js";
import { PushCalls } from "../src/push/calls.js";

const LIMITS: BatchLimits = {
  jobs: 10,
  payloadBytes: 1_000,
  batchJobs: 4,
  batchBytes: 100,
  flights: 2,
  giveUpAfter: 1_000,
};
const KEY = { key: "a" };

type Sent = Batch<{ key: string }, number>;

function made(limits: Partial<BatchLimits> = {}) {
  const batcher = new PushBatcher<{ key: string }, number>(
    { ...LIMITS, ...limits },
    new PushCalls(),
    () => 1,
  );
  const add = (waiter: number, bytes = 1, own: Own = NOTHING, key = KEY): Push<number> => {
    const push = { payload: new Uint8Array(bytes), own, waiter };
    batcher.add(0, key, push);
    return push;
  };
  return { batcher, add };
}

const waiters = (batch: Sent | undefined) => batch?.pushes.map(({ waiter }) => waiter);

test("the first goes at once, the rest gather while it flies, in order", () => {
  const { batcher, add } = made();
  add(1);
  const [first] = batcher.batchesToSend(0);
  assert.deepEqual(waiters(first), [1]);
  for (const n of [2, 3, 4]) add(n);
  assert.deepEqual(batcher.batchesToSend(0), []);
  batcher.handleDone(first as Sent);
  assert.deepEqual(waiters(batcher.batchesToSend(0)[0]), [2, 3, 4]);
});

test("a call carries so many jobs and bytes; one always fits", () => {
  const { batcher, add } = made({ jobs: 20 });
  for (let n = 0; n < 5; n += 1) add(n, 30);
  add(5, 500);
  const sizes: number[] = [];
  for (let [batch] = batcher.batchesToSend(0); batch; [batch] = batcher.batchesToSend(0)) {
    sizes.push(batch.pushes.length);
    batcher.handleDone(batch);
  }
  assert.deepEqual(sizes, [3, 2, 1]);
  assert.deepEqual([batcher.jobs, batcher.payloadBytes], [0, 0]);
});

test("a full buffer refuses the newest, and has room again after an answer", () => {
  const { batcher, add } = made({ jobs: 2 });
  add(1);
  add(2);
  assert.throws(() => add(3), BufferFull);
  const [batch] = batcher.batchesToSend(0);
  batcher.handleDone(batch as Sent);
  add(3);
  assert.equal(batcher.jobs, 1);
});

test("an unknown outcome is asked for again as the same call, until its time is over", () => {
  const { batcher, add } = made();
  add(1);
  const [batch] = batcher.batchesToSend(0);
  const call = batch?.call;
  assert.ok(call && batcher.handleUnknown(0, batch as Sent));
  assert.deepEqual(batcher.batchesToSend(10), [], "after a pause");
  const [again] = batcher.batchesToSend(batcher.nextDeadline() ?? 0);
  assert.equal(again?.call, call);
  assert.ok(batcher.handleUnknown(100, again as Sent, 500), "as long as the server asks for");
  assert.equal(batcher.nextDeadline(), 600);
  const [last] = batcher.batchesToSend(600);
  assert.ok(!batcher.handleUnknown(990, last as Sent));
  assert.equal(batcher.jobs, 0);
});

test("a refused batch is split until the push at fault is alone", () => {
  const { batcher, add } = made();
  for (const n of [1, 2, 3, 4]) add(n);
  const done: number[] = [];
  const refused: number[] = [];
  for (let [batch] = batcher.batchesToSend(0); batch; [batch] = batcher.batchesToSend(0)) {
    const own = waiters(batch) ?? [];
    if (!own.includes(3)) {
      done.push(...own);
      batcher.handleDone(batch);
    } else if (!batcher.handleRefused(batch)) refused.push(...own);
  }
  assert.deepEqual([done, refused], [[1, 2, 4], [3]]);
  assert.equal(batcher.jobs, 0);
});

test("keys make a repeat safe by themselves; a withdrawn push is gone", () => {
  const { batcher, add } = made();
  add(1, 1, { ...NOTHING, jobKey: "k" });
  const other = add(2, 1, NOTHING, { key: "b" });
  assert.ok(batcher.withdraw({ key: "b" }, other));
  const batches = batcher.batchesToSend(0);
  assert.equal(batches.length, 1);
  assert.equal(batches[0]?.call, undefined);
  assert.ok(!batcher.withdraw(KEY, batches[0]?.pushes[0] as Push<number>), "it may be stored");
});

test("a producer says which of its calls are over, and retires when one is not known", () => {
  const calls = new PushCalls();
  const [first, second] = [calls.begin(), calls.begin()];
  assert.deepEqual([first.answeredBelow, second.answeredBelow], [1, 1]);
  calls.over(first, true);
  const third = calls.begin();
  assert.deepEqual([third.producer, third.answeredBelow], [first.producer, 2]);
  calls.over(second, false);
  assert.notEqual(calls.begin().producer, first.producer);
});

test("fifty thousand keys at once are sent in turns, in time that grows with their number", () => {
  const { batcher, add } = made({ jobs: 50_000, payloadBytes: 1e9, flights: 32 });
  const began = performance.now();
  for (let n = 0; n < 50_000; n += 1) add(n, 1, NOTHING, { key: `k${n}` });
  let sent = 0;
  for (let now = 0; batcher.jobs > 0; now += 1) {
    assert.ok((batcher.nextDeadline() ?? 0) <= now);
    for (const batch of batcher.batchesToSend(now)) {
      sent += batch.pushes.length;
      batcher.handleDone(batch);
    }
  }
  assert.equal(sent, 50_000);
  const took = performance.now() - began;
  assert.ok(took < 10_000, `${took} ms: copies of all keys at each step would take minutes`);
});
