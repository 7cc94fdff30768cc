/** The pure parts of the worker's stream: time is an argument, frames are values. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  FailItemSchema,
  RevokeReason,
  SettleOutcome,
  StreamOpenSchema,
  type StreamRequest,
  StreamResponseSchema,
} from "@jobline/client/v1";
import { interruptedRelease } from "../src/stream/received.js";
import { Session } from "../src/stream/session.js";
import { Window } from "../src/stream/window.js";
import { Backlog } from "../src/worker/backlog.js";
import { Drain, Stage } from "../src/worker/drain.js";
import type { LeasedJob } from "../src/worker/leased.js";
import type { Route } from "../src/worker/routes.js";

const INTERVAL = { seconds: 10n };

function begun(): Session {
  const session = new Session(create(StreamOpenSchema, { queues: [{ queue: "q" }] }), 8, 1 << 20);
  session.connect(0);
  assert.ok(session.nextFrame(0)?.open);
  receive(session, 0, { opened: { session: "s", heartbeatInterval: INTERVAL } });
  return session;
}

function receive(session: Session, now: number, frame: MessageInitShape<typeof StreamResponseSchema>) {
  return session.handleFrame(now, create(StreamResponseSchema, frame));
}

function framesOf(session: Session, now: number): StreamRequest[] {
  const frames: StreamRequest[] = [];
  for (let frame = session.nextFrame(now); frame; frame = session.nextFrame(now)) frames.push(frame);
  return frames;
}

const run = (firstId: bigint, count: number, delivery = 1n, leaseMs = 30_000n) => ({
  runs: [
    { firstId, delivery, leaseMs, queue: "q", payloads: Array<Uint8Array>(count).fill(new Uint8Array()) },
  ],
});

test("acks gather into packed columns, and are confirmed", () => {
  const session = begun();
  assert.equal(receive(session, 0, run(1n, 3)).runs[0]?.payloads.length, 3);
  for (const id of [1n, 2n, 3n]) assert.ok(session.ack(id, 1n));
  assert.ok(!session.ack(3n, 1n), "it is settled");
  const settle = framesOf(session, 0).flatMap((frame) => frame.settles)[0];
  assert.deepEqual(settle?.ackIds, [1n, 2n, 3n]);
  assert.ok(!session.isConfirmed);
  receive(session, 0, { confirms: [{ seq: settle?.seq ?? 0n }] });
  assert.ok(session.isConfirmed);
});

test("reports go in a frame before the settle of their job", () => {
  const session = begun();
  receive(session, 0, run(1n, 1));
  framesOf(session, 0);
  session.report(1n, 1n, { progress: 50, checkpoint: new Uint8Array([1]) });
  session.log(1n, 1n, { atMs: 1, level: 2, text: "line" });
  session.settle(interruptedRelease(1n, 1n));
  const [first, second] = framesOf(session, 0);
  assert.equal(first?.extends[0]?.progress, 50);
  assert.equal(first?.logs[0]?.lines[0], "line");
  assert.equal(first?.settles.length, 0);
  assert.equal(second?.settles[0]?.releases.length, 1);
});

test("a new stream sends again what was not confirmed, keeps held leases, and loses the others", () => {
  const session = begun();
  receive(session, 0, run(1n, 3));
  session.ack(1n, 1n);
  const sent = framesOf(session, 0).flatMap((frame) => frame.settles)[0];
  session.report(2n, 1n, { checkpoint: new Uint8Array([7]) });
  framesOf(session, 0);
  session.disconnect();
  session.connect(100);
  assert.equal(session.nextFrame(100)?.open?.session, "s");
  // Job 3 was lost meanwhile; 9 was leased in a frame that never arrived.
  const opened = { session: "s", resumed: true, heldIds: [1n, 2n, 9n], heldDeliveries: [1n, 1n, 4n] };
  const { lost } = receive(session, 100, { opened });
  assert.deepEqual(lost, [{ id: 3n, delivery: 1n, reason: RevokeReason.LEASE_LOST }]);
  const frames = framesOf(session, 100);
  assert.equal(frames[0]?.extends[0]?.checkpoint?.[0], 7, "the checkpoint may be lost with the old stream");
  const settles = frames.flatMap((frame) => frame.settles);
  assert.deepEqual(settles[0], sent);
  assert.equal(settles[1]?.releases[0]?.id, 9n);
});

test("a lease that is delivered again is not run again; a newer one ends the older one", () => {
  const session = begun();
  receive(session, 0, run(1n, 2));
  const again = receive(session, 0, run(1n, 3));
  assert.deepEqual(
    again.runs.map(({ firstId }) => firstId),
    [3n],
  );
  const newer = receive(session, 0, run(2n, 1, 5n));
  assert.deepEqual(newer.lost, [{ id: 2n, delivery: 1n, reason: RevokeReason.LEASE_LOST }]);
  assert.equal(newer.runs.length, 1);
});

test("a cancelled job stays held until it is settled; other revokes end the lease", () => {
  const session = begun();
  receive(session, 0, run(1n, 2));
  const revokes = [
    { id: 1n, delivery: 1n, reason: RevokeReason.CANCELLED },
    { id: 2n, delivery: 1n, reason: RevokeReason.TIMEOUT },
    { id: 2n, delivery: 9n, reason: RevokeReason.TIMEOUT },
  ];
  assert.equal(receive(session, 0, { revokes }).lost.length, 2);
  assert.deepEqual([...session.held.keys()], [1n]);
});

test("a heartbeat is due within a third of the shortest lease, and 0.8 of the interval without one", () => {
  const session = begun();
  framesOf(session, 0);
  assert.equal(session.nextDeadline(), 8_000);
  receive(session, 0, run(1n, 1, 1n, 3_000n));
  assert.equal(session.nextDeadline(), 1_000);
  assert.deepEqual(framesOf(session, 999), []);
  assert.equal(framesOf(session, 1_000).length, 1);
});

test("the server is silent after three intervals, but not if this process itself stood still", () => {
  const session = begun();
  for (let now = 5_000; now < 30_000; now += 5_000) assert.ok(!session.isSilent(now));
  assert.ok(session.isSilent(30_000));
  const stopped = begun();
  assert.ok(!stopped.isSilent(60_000), "its frames may wait unread");
  assert.ok(!stopped.isSilent(70_000));
  assert.ok(stopped.isSilent(85_000));
});

test("outcomes that came too late are reported by kind, and deaths with their error", () => {
  const session = begun();
  receive(session, 0, run(1n, 2));
  session.ack(1n, 1n);
  session.settle(interruptedRelease(2n, 1n));
  const seq = framesOf(session, 0).flatMap((frame) => frame.settles)[0]?.seq ?? 0n;
  const exceptions = [0, 1].map((index) => ({ index, outcome: SettleOutcome.LEASE_LOST }));
  const { reports } = receive(session, 0, { confirms: [{ seq, exceptions }] });
  assert.deepEqual(
    reports.map(({ id, kind, isLost }) => [id, kind, isLost]),
    [
      [1n, "ack", true],
      [2n, "release", true],
    ],
  );
});

test("a stream is opened once", () => {
  const session = begun();
  receive(session, 0, run(1n, 1));
  const again = { session: "another", heartbeatInterval: INTERVAL };
  const refusal = {
    name: "Internal",
    message: "the server opened a stream twice",
    reason: "UNEXPECTED_ANSWER",
  };
  assert.throws(() => receive(session, 0, { opened: again, ...run(2n, 1) }), refusal);
  assert.deepEqual([...session.held], [[1n, 1n]]);
  session.disconnect();
  session.connect(100);
  assert.equal(session.nextFrame(100)?.open?.session, "s", "of the first answer");
  const held = { heldIds: [1n], heldDeliveries: [1n] };
  assert.deepEqual(receive(session, 100, { opened: { session: "s", ...held } }).lost, []);
});

test("a confirm that repeats itself reports each job once", () => {
  const session = begun();
  receive(session, 0, run(1n, 2));
  session.ack(1n, 1n);
  session.settle({ kind: "fail", item: create(FailItemSchema, { id: 2n, delivery: 1n }) });
  const seq = framesOf(session, 0).flatMap((frame) => frame.settles)[0]?.seq ?? 0n;
  const exceptions = Array(1_000).fill({ index: 0, outcome: SettleOutcome.LEASE_LOST });
  const { reports } = receive(session, 0, { confirms: [{ seq, exceptions, dead: Array(1_000).fill(1) }] });
  assert.deepEqual(
    reports.map(({ id, isLost, isDead }) => [id, isLost, isDead]),
    [
      [1n, true, false],
      [2n, false, true],
    ],
  );
});

test("a drained session half-closes when all is sent and the drain is confirmed", () => {
  const session = begun();
  receive(session, 0, run(1n, 1));
  session.drain();
  const [drain, fence] = framesOf(session, 0);
  assert.ok(drain?.drain && drain.settles.length === 0);
  assert.equal(fence?.settles.length, 1, "its confirm comes behind the last job");
  session.ack(1n, 1n);
  framesOf(session, 0);
  assert.ok(!session.mayHalfClose);
  receive(session, 0, { confirms: [{ seq: 1n }] });
  assert.ok(session.mayHalfClose && !session.isOver);
  receive(session, 0, { confirms: [{ seq: 2n }] });
  assert.ok(session.isOver);
});

test("a job that was on its way at the drain can be given back", () => {
  const session = begun();
  session.drain();
  framesOf(session, 0);
  assert.ok(!session.mayHalfClose);
  assert.equal(receive(session, 0, run(1n, 1)).runs.length, 1);
  session.settle(interruptedRelease(1n, 1n));
  receive(session, 0, { confirms: [{ seq: 1n }] });
  assert.ok(!session.mayHalfClose, "its release is not sent yet");
  assert.equal(framesOf(session, 0)[0]?.settles[0]?.releases[0]?.id, 1n);
  assert.ok(session.mayHalfClose);
});

test("a confirm of the stream before is none of this drain", () => {
  const session = begun();
  session.drain();
  framesOf(session, 0);
  session.disconnect();
  session.connect(100);
  framesOf(session, 100);
  receive(session, 100, { opened: { session: "s", resumed: true, heartbeatInterval: INTERVAL } });
  const [first, second] = framesOf(session, 100);
  assert.ok(first?.drain);
  assert.equal(first.settles[0]?.seq, 1n);
  receive(session, 100, { confirms: [{ seq: 1n }] });
  assert.ok(!session.mayHalfClose);
  assert.equal(second?.settles[0]?.seq, 2n);
  receive(session, 100, { confirms: [{ seq: 2n }] });
  assert.ok(session.mayHalfClose);
});

test("the window follows the work, and returns to the runners when the worker is idle", () => {
  const window = new Window(0, 16);
  assert.ok(window.measure(100, 10_000));
  assert.equal(window.size, 10_000);
  for (let now = 200; now < 20_000; now += 100) window.measure(now, 10_000);
  assert.equal(window.size, 16);
  assert.ok(window.isAtRest);
  assert.ok(!new Window(0, 16, 5).measure(100, 10_000));
});

test("a backlog that is never empty forgets what has begun, in order", () => {
  const backlog = new Backlog();
  const route = { size: 0 } as Route;
  const add = (id: number) => backlog.add(route, { id } as unknown as LeasedJob, () => undefined);
  const kept = () => (backlog as unknown as { queue: unknown[] }).queue.length;
  add(0);
  let most = 0;
  for (let id = 1; id <= 200_000; id += 1) {
    add(id);
    assert.equal(backlog.next()?.jobs[0]?.id, id - 1);
    most = Math.max(most, kept());
  }
  assert.ok(most <= 10_000, `it keeps ${most} calls, and one of them is to come`);
});

test("the stages of a stop end early, at their deadline, or at another request", () => {
  const drain = new Drain(1_000, 100);
  assert.equal(drain.step(0, true, false), undefined);
  drain.requestStop();
  assert.equal(drain.step(0, false, false), Stage.FINISHING);
  assert.equal(drain.step(999, false, false), undefined);
  assert.equal(drain.step(1_000, false, false), Stage.CANCELLING);
  drain.requestStop();
  assert.equal(drain.step(1_001, false, false), Stage.RELEASING);
  assert.equal(drain.step(1_002, false, true), Stage.STOPPED);
});

test("heartbeats go neither in a storm nor hardly ever, whatever the server asks for", () => {
  for (const [asked, due] of [
    [{ seconds: -5n }, 40],
    [{ nanos: 1 }, 40],
    [{ seconds: 2n ** 62n }, 48_000],
    [{}, 24_000],
  ] as const) {
    const session = new Session(create(StreamOpenSchema, { queues: [{ queue: "q" }] }), 8, 1 << 20);
    session.connect(0);
    session.nextFrame(0);
    receive(session, 0, { opened: { session: "s", heartbeatInterval: asked } });
    session.nextFrame(0);
    assert.equal(session.nextDeadline(), due);
    assert.ok(!session.isSilent(0));
  }
});
