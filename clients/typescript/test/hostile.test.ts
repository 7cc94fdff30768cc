/** What a server says, and what many callers do at once, is bounded: no storm, no endless pause, no lost promise. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Client, ClientClosed, JoblineError, Worker } from "@jobline/client";
import { JobState, PushResponseSchema, WaitResponseSchema } from "@jobline/client/v1";
import { onAbort } from "../src/aborts.js";
import { NOTHING } from "../src/push/batch.js";
import { PushBatcher } from "../src/push/batcher.js";
import { Heartbeat } from "../src/stream/heartbeat.js";
import { bytesOf, confirmAll, fakeServer, say } from "./fake_server.js";
import { signal, TestLogger, until } from "./server.js";

const OPENED = { opened: { session: "s", heartbeatInterval: { seconds: 10n } } };
const STORED = bytesOf(PushResponseSchema, { firstId: 1n, count: 1 });

/** The bytes of a `google.rpc.Status` whose detail asks for another try after so many seconds. */
function retryAfter(seconds: number): Buffer {
  const text = (tag: number, bytes: Buffer) => Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const varint: number[] = [];
  for (let left = BigInt(seconds); ; left >>= 7n) {
    varint.push(Number(left & 0x7fn) | (left > 0x7fn ? 0x80 : 0));
    if (left <= 0x7fn) break;
  }
  const info = text(0x0a, Buffer.from([0x08, ...varint]));
  const kind = Buffer.from("type.googleapis.com/google.rpc.RetryInfo");
  return text(0x1a, Buffer.concat([text(0x0a, kind), text(0x12, info)]));
}

test("no lease of a server makes a storm of frames", () => {
  for (const [leaseMs, pause] of [
    [1, 50],
    [3_000, 1_000],
    [-1, 8_000],
  ] as const) {
    const heartbeat = new Heartbeat();
    heartbeat.connect(0);
    heartbeat.opened(0, 10_000);
    heartbeat.leased(leaseMs, false);
    assert.equal(heartbeat.nextFrame(true), pause, `a lease of ${leaseMs} ms`);
  }
});

test("a wait that is told to come back in a thousand years does not come back at once, nor never", async () => {
  let calls = 0;
  const target = await fakeServer({
    Wait: (call) => {
      calls += 1;
      const details = retryAfter(365 * 86_400 * 1_000);
      const error = Object.assign(new Error("later"), { code: 14, details: "later" });
      import("@grpc/grpc-js").then(({ Metadata }) => {
        const metadata = new Metadata();
        metadata.set("grpc-status-details-bin", details);
        call.emit("error", Object.assign(error, { metadata }));
      });
    },
    Push: (_, answer) => answer(null, STORED),
  });
  const client = new Client({ target });
  await client.push("q", 1);
  const error = await client.wait(1n, { timeout: 500 }).catch((caught: unknown) => caught);
  assert.ok(calls < 10, `${calls} calls in half a second`);
  assert.ok(error instanceof JoblineError);
  assert.equal(error.retryAfter ?? 3_600_000, 3_600_000);
  // A timer of an hour that is left would hold this very process.
  assert.ok(!process.getActiveResourcesInfo().includes("Timeout"), String(process.getActiveResourcesInfo()));
  await client.close();
});

test("a grace of months is not over at once", async () => {
  const warned: string[] = [];
  const onWarning = (warning: Error) => warned.push(warning.name);
  process.on("warning", onWarning);
  const target = await fakeServer({
    Stream: (call) => {
      confirmAll(call);
      say(call, OPENED, { jobs: [{ id: 1n, delivery: 1n, leaseMs: 30_000n, queue: "q" }] });
      say(call, { revokes: [{ id: 1n, delivery: 1n, reason: 2 }] });
    },
  });
  const [told, free] = [signal<void>(), signal<void>()];
  const logger = new TestLogger();
  const worker = new Worker({ target, logger, cancelGrace: "60d", softStop: 1, hardStop: 1 });
  worker.handle("q", async (_: unknown, context) => {
    context.signal.addEventListener("abort", () => told.resolve());
    if (context.signal.aborted) told.resolve();
    await free.promise;
  });
  await worker.start();
  await told.promise;
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(worker.stats.stuck, 0);
  assert.deepEqual(warned, []);
  free.resolve();
  await worker.stop();
  process.off("warning", onWarning);
});

test("reports of any number end no worker", async () => {
  let streams = 0;
  const target = await fakeServer({
    Stream: (call) => {
      streams += 1;
      call.on("error", () => undefined);
      call.on("end", () => call.end());
      say(call, OPENED, { jobs: [{ id: 1n, delivery: 1n, leaseMs: 30_000n, queue: "q" }] });
      call.on("data", () => say(call, { confirms: [{ seq: 1n, dead: new Array(500_000).fill(0) }] }));
    },
  });
  const logger = new TestLogger();
  const worker = new Worker({ target, logger }).handle("q", () => undefined);
  await worker.start();
  await until("it was said that the job is dead", () => logger.has("job 1 is dead") || logger.has("stops"));
  await worker.stop();
  assert.ok(!logger.has("the worker stops"), logger.lines.join("|").slice(0, 500));
  assert.ok(logger.lines.length < 10, `${logger.lines.length} lines`);
  assert.equal(streams, 1);
});

/** A client of a server that says when a push has come, and answers it when it is let. */
async function slowPushes() {
  const [asked, free] = [signal<void>(), signal<void>()];
  const target = await fakeServer({
    Push: (_, answer) => {
      asked.resolve();
      void free.promise.then(() => answer(null, STORED));
    },
  });
  const client = new Client({ target });
  return { client, asked, free };
}

test("a client may be closed twice while a push is under way, and both wait for it", async () => {
  const { client, asked, free } = await slowPushes();
  const pushed = client.push("q", 1);
  await asked.promise;
  const closed = Promise.all([client.close(), client.close()]);
  free.resolve();
  assert.equal((await pushed).id, 1n);
  const late = new Promise((resolve) => setTimeout(resolve, 2_000, "late").unref());
  assert.notEqual(await Promise.race([closed, late]), "late");
});

test("a close waits for calls of many pushes, too", async () => {
  const { client, asked, free } = await slowPushes();
  const pushed = client.pushMany("q", [1]);
  await asked.promise;
  const closed = client.close();
  await assert.rejects(client.pushMany("q", [1]), ClientClosed);
  setTimeout(() => free.resolve(), 50);
  assert.equal((await pushed)[0]?.id, 1n);
  await closed;
});

test("a dozen workers that stop by the same signal are no leak", async () => {
  const warned: string[] = [];
  const onWarning = (warning: Error) => warned.push(warning.message);
  process.on("warning", onWarning);
  const target = await fakeServer({
    Stream: (call) => {
      confirmAll(call);
      say(call, OPENED);
    },
  });
  const before = process.listenerCount("SIGUSR2");
  const logger = new TestLogger();
  const workers = Array.from({ length: 12 }, () =>
    new Worker({ target, logger, signals: ["SIGUSR2"] }).handle("q", () => undefined),
  );
  const runs = workers.map((worker) => worker.run());
  await Promise.all(workers.map((worker) => worker.start()));
  process.kill(process.pid, "SIGUSR2");
  await Promise.all(runs);
  assert.equal(process.listenerCount("SIGUSR2"), before);
  assert.deepEqual(warned, []);
  process.off("warning", onWarning);
});

/** Returns the milliseconds of processor that something takes. */
function processorOf(what: () => void): number {
  const before = process.cpuUsage();
  what();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test("many pushes that are withdrawn at once, the last first, do not each look through all others", () => {
  const calls = { begin: () => ({ producer: "p", sequence: 1, answeredBelow: 1 }), over: () => undefined };
  const limits = {
    jobs: 1e6,
    payloadBytes: 1e9,
    batchJobs: 1_000,
    batchBytes: 1e6,
    flights: 1,
    giveUpAfter: 1,
  };
  const batcher = new PushBatcher<{ key: string }, undefined>(limits, calls, () => 0);
  const pushes = Array.from({ length: 200_000 }, () => ({
    payload: new Uint8Array(1),
    own: NOTHING,
    waiter: undefined,
  }));
  for (const push of pushes) batcher.add(0, { key: "q" }, push);
  const took = processorOf(() => {
    for (const push of pushes.slice(1).reverse()) assert.ok(batcher.withdraw({ key: "q" }, push));
  });
  assert.ok(took < 3_000, `${took} ms`);
  assert.ok(!batcher.withdraw({ key: "q" }, pushes[1] as (typeof pushes)[0]), "it is gone");
  assert.equal(batcher.jobs, 1);
  assert.equal(batcher.batchesToSend(0)[0]?.pushes.length, 1);
});

test("one signal of fifty thousand calls costs each the same, and leaves nothing behind", () => {
  const controller = new AbortController();
  let fired = 0;
  const took = processorOf(() => {
    const ends = Array.from({ length: 50_000 }, () => onAbort(controller.signal, () => (fired += 1)));
    for (const end of ends.slice(1)) end();
  });
  assert.ok(took < 3_000, `${took} ms`);
  assert.equal(getEventListeners(controller.signal, "abort").length, 1);
  controller.abort();
  assert.equal(fired, 1);
});

test("a signal is listened to only during calls, or Node would keep one of AbortSignal.any for ever", () => {
  const { signal: lasting } = new AbortController();
  const composed = AbortSignal.any([lasting, new AbortController().signal]);
  let fired = 0;
  for (let call = 0; call < 2; call += 1) {
    const ends = [1, 2].map(() => onAbort(composed, () => (fired += 1)));
    for (const end of [...ends, ...ends]) end();
    assert.equal(getEventListeners(composed, "abort").length, 0);
  }
  const controller = new AbortController();
  onAbort(controller.signal, () => undefined)();
  onAbort(controller.signal, () => (fired += 1));
  controller.abort();
  assert.equal(fired, 1);
});

test("an end that was not waited for is not kept", async () => {
  const target = await fakeServer({
    Wait: (call) => {
      call.write(bytesOf(WaitResponseSchema, { id: 1n, state: JobState.COMPLETED }));
      call.end();
    },
  });
  const client = new Client({ target });
  assert.equal((await client.wait(1n)).state, "completed");
  await client.close();
  await assert.rejects(client.wait(1n), ClientClosed);
});
