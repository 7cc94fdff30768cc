import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  Cancel,
  Client,
  Dead,
  defineJob,
  InvalidArgument,
  JobCancelled,
  JobDead,
  RateLimited,
  Retry,
  Snooze,
  Unavailable,
  Worker,
} from "@jobline/client";
import { testJobline } from "@jobline/client/testing";
import { StreamOpenSchema } from "@jobline/client/v1";
import { COUNTERS, type FromStream } from "../src/thread/messages.js";
import { openStream } from "../src/worker/stream_thread.js";
import { serverAndClient, signal, storedJob, TestLogger, until, workerOf } from "./server.js";

const { server, client } = await serverAndClient();

test("handlers are found by queue and name, and get payload and context", async () => {
  const a = defineJob<number, string>({ queue: "routes", name: "a" });
  const b = defineJob<number, string>({ queue: "routes", name: "b", group: "g", headers: { h: "1" } });
  await using worker = workerOf(server)
    .handle(a, (payload) => `a${payload}`)
    .handle(b, async (payload, { attempt, reason, group, headers, delivery, queue, name }) => {
      assert.ok(delivery > 0n);
      return `b${payload} ${attempt} ${reason} ${group} ${headers.h} ${queue}/${name}`;
    });
  await worker.start();
  assert.equal(await client.pushAndWait(a, 1), "a1");
  assert.equal(await client.pushAndWait(b, 2), "b2 1 first g 1 routes/b");
  assert.throws(() => worker.handle(a, () => "late"), InvalidArgument);
  await until("counts", () => worker.stats.done === 2 && worker.stats.running === 0);
});

test("a thrown error fails the attempt with its type, message and stack, and is retried", async () => {
  const flaky = defineJob<null, string>({ queue: "flaky", backoff: { delays: ["10ms"] } });
  await using worker = workerOf(server).handle(flaky, (_, { attempt, reason }) => {
    if (attempt < 3) throw new RangeError(`try ${attempt}`, { cause: new Error("below") });
    return `${attempt} ${reason}`;
  });
  await worker.start();
  const { id } = await client.push(flaky, null);
  assert.equal(await client.result(flaky, id), "3 retry");
  const { history } = await storedJob(client, id);
  assert.equal(history[0]?.error?.type, "RangeError");
  assert.equal(history[0]?.error?.message, "try 1");
  assert.match(history[0]?.error?.stack ?? "", /worker\.test\.js[\s\S]*Caused by: Error: below/);
});

test("outcomes: retry after, snooze, cancel, dead", async () => {
  const kinds = defineJob<string, string>({ queue: "outcomes", maxAttempts: 3 });
  await using worker = workerOf(server).handle(kinds, (kind, { attempt, reason }) => {
    if (kind === "retry" && attempt === 1) throw new Retry("20ms", { cause: new Error("not yet") });
    if (kind === "snooze" && reason === "first") return new Snooze("20ms");
    if (kind === "cancel") throw new Cancel("not wanted");
    if (kind === "dead") throw new Dead("hopeless", { cause: new TypeError("why") });
    return `${kind} ${attempt} ${reason}`;
  });
  await worker.start();
  assert.equal(await client.pushAndWait(kinds, "retry"), "retry 2 retry");
  assert.equal(await client.pushAndWait(kinds, "snooze"), "snooze 1 released");
  await assert.rejects(client.pushAndWait(kinds, "cancel"), JobCancelled);
  await assert.rejects(client.pushAndWait(kinds, "dead"), (error: JobDead) => {
    return error instanceof JobDead && error.message.includes("TypeError: hopeless: why");
  });
  assert.throws(() => new Snooze("401d"), InvalidArgument);
});

test("RateLimited holds back the group until then, without an attempt", async () => {
  const limited = defineJob<number, number>({ queue: "limited", group: "tenant" });
  const calls: number[] = [];
  await using worker = workerOf(server).handle(limited, (_, { attempt }) => {
    calls.push(performance.now());
    if (calls.length === 1) throw new RateLimited("300ms");
    return attempt;
  });
  await worker.start();
  assert.equal(await client.pushAndWait(limited, 1), 1);
  assert.ok((calls[1] ?? 0) - (calls[0] ?? 0) >= 250);
});

test("a payload that is no JSON, or does not fit its schema, fails its attempt", async () => {
  const typed = defineJob<number>({
    queue: "typed",
    maxAttempts: 1,
    schema: {
      parse(value) {
        if (typeof value !== "number") throw new TypeError("no number");
        return value;
      },
    },
  });
  await using worker = workerOf(server).handle(typed, () => undefined);
  await worker.start();
  const { id } = await client.push("typed", Buffer.from("{"));
  await assert.rejects(client.result("typed", id), /CodecError/);
  const other = await client.push("typed", "text", { maxAttempts: 1 });
  assert.match((await storedJob(client, other.id)).queue, /typed/);
  await until(
    "it is retried or dead",
    async () => (await storedJob(client, other.id)).error?.message === "no number",
  );
});

test("a handler that ignores its abort is reported, and its place is given to another", async () => {
  const deaf = defineJob<string, string>({ queue: "deaf" });
  const logger = new TestLogger();
  const hold = signal();
  await using worker = workerOf(server, { concurrency: 1, cancelGrace: "50ms", logger }).handle(
    deaf,
    async (kind) => {
      if (kind === "hold") await hold.promise;
      return kind;
    },
  );
  await worker.start();
  const { id } = await client.push(deaf, "hold");
  await until("it runs", () => worker.stats.running === 1);
  await client.admin.jobs.cancelJobs({ jobs: { ids: [id] }, reason: "no" });
  await assert.rejects(client.result(deaf, id), JobCancelled);
  assert.equal(await client.pushAndWait(deaf, "next"), "next");
  assert.equal(worker.stats.stuck, 1);
  assert.ok(logger.has("ignores its end"));
  hold.resolve();
  await until("it has ended", () => worker.stats.stuck === 0);
});

test("batch handlers: answers by id, errors one by one, a forgotten job has failed", async () => {
  const kind = defineJob<number, number>({ queue: "batches", maxAttempts: 1 });
  const sizes: number[] = [];
  await using worker = workerOf(server).handleBatch(kind, { size: 4, wait: "2s" }, (items) => {
    sizes.push(items.length);
    const answers = new Map<bigint, number | Error>();
    for (const { payload, context } of items) {
      if (payload === 1) answers.set(context.id, new Error("one"));
      else if (payload !== 2) answers.set(context.id, payload * 10);
    }
    return answers;
  });
  await worker.start();
  const pushed = await client.pushMany(kind, [0, 1, 2, 3]);
  const ends = await Promise.allSettled(pushed.map(({ id }) => client.result(kind, id)));
  const [zero, one, two, three] = ends;
  assert.deepEqual(
    [zero, three].map((end) => end?.status === "fulfilled" && end.value),
    [0, 30],
  );
  assert.ok(one?.status === "rejected" && String(one.reason).includes("Error: one"));
  assert.ok(two?.status === "rejected" && String(two.reason).includes("Forgotten"));
  assert.deepEqual(sizes, [4]);
  await client.push(kind, 5);
  await until("the wait of a small batch has ended", () => sizes.length === 2);
});

test("middleware wraps handlers, the first outermost, and may change the outcome", async () => {
  const kind = defineJob<number, string>({ queue: "layers" });
  const seen: string[] = [];
  const layer = (name: string) => async (_: readonly unknown[], next: () => Promise<unknown>) => {
    seen.push(name);
    return `${name}(${await next()})`;
  };
  await using worker = workerOf(server, { middleware: [layer("a"), layer("b")] }).handle(kind, (n) => `${n}`);
  await worker.start();
  assert.equal(await client.pushAndWait(kind, 1), "a(b(1))");
  assert.deepEqual(seen, ["a", "b"]);
});

test("concurrency bounds what runs, and the state is made first and disposed of last", async () => {
  const kind = defineJob({ queue: "bounded" });
  const state = {
    isOpen: true,
    async [Symbol.asyncDispose]() {
      this.isOpen = false;
    },
  };
  let running = 0;
  let most = 0;
  const worker = workerOf(server, { concurrency: 3, state: async () => state }).handle(
    kind,
    async (_, context) => {
      assert.ok(context.state.isOpen);
      running += 1;
      most = Math.max(most, running);
      await sleep(5);
      running -= 1;
    },
  );
  await worker.start();
  await client.pushMany(
    kind,
    Array.from({ length: 30 }, (_, index) => index),
  );
  await until("all are done", () => worker.stats.done === 30);
  await worker.stop();
  assert.equal(most, 3);
  await until("the state is disposed of", () => !state.isOpen);
});

test("a dozen workers of a program share the thread of their streams, and end one by one", async () => {
  const threads = () => (existsSync("/proc/self/task") ? readdirSync("/proc/self/task").length : 0);
  const kinds = Array.from({ length: 12 }, (_, n) => defineJob<number, number>({ queue: `dozen-${n}` }));
  const before = threads();
  const workers = kinds.map((kind, n) => workerOf(server).handle(kind, () => n));
  await Promise.all(workers.map((worker) => worker.start()));
  assert.ok(threads() - before < 8, "beside threads of Node's own pool there is one more");
  await Promise.all(workers.slice(0, 6).map((worker) => worker.stop()));
  const results = kinds.slice(6).map((kind) => client.pushAndWait(kind, 0));
  assert.deepEqual(await Promise.all(results), [6, 7, 8, 9, 10, 11]);
  await Promise.all(workers.map((worker) => worker.stop()));
});

test("a mistake in the stream of one worker ends that worker alone, though they share a thread", async () => {
  const kind = defineJob<number, number>({ queue: "beside" });
  await using worker = workerOf(server).handle(kind, (n) => n);
  await worker.start();
  const opening = {
    worker: { id: "broken" },
    handlers: [{ queue: "broken" }],
    queues: [{ queue: "broken" }],
  };
  const settings = {
    ...{
      address: {
        target: server.address,
        tls: false as const,
        metadata: {},
        token: undefined,
        asksForToken: false,
      },
      runners: 1,
      window: undefined,
      windowBytes: 1,
      health: undefined,
    },
    opening: toBinary(StreamOpenSchema, create(StreamOpenSchema, opening)),
    counters: new SharedArrayBuffer(8 * COUNTERS),
  };
  const { port, close } = openStream(settings, () => assert.fail("the thread goes on"));
  const said: string[] = [];
  port.on("message", ({ kind: what }: FromStream) => said.push(what));
  port.postMessage({ kind: "outcomes" }); // without what it should have
  await until("it has ended", () => said.includes("ended"));
  assert.ok(said.includes("failed"));
  close();
  assert.equal(await client.pushAndWait(kind, 1), 1);
});

test("start and run throw what no second try changes; a worker without handlers is refused", async () => {
  await assert.rejects(new Worker({ target: server.address }).start(), /at least one handler/);
  await assert.rejects(
    workerOf(server, { queues: { "not a queue!": 1 } })
      .handle("q", () => undefined)
      .run(),
    InvalidArgument,
  );
  const many = workerOf(server);
  for (let n = 0; n < 1_001; n += 1) many.handle(defineJob({ queue: "q", name: `n${n}` }), () => undefined);
  await assert.rejects(many.start(), { name: "TooLarge", message: /handlers: must be at most 1000/ });
  assert.throws(() => new Worker({ concurrency: 0 }), InvalidArgument);
  assert.throws(() => new Worker({ concurency: 2 } as object), /concurency: there is no such option/);
  assert.throws(() => new Client({ server: "host:1" } as object), /server: there is no such option/);
  await assert.rejects(testJobline({ strt: "now" } as object), /strt: there is no such option/);
  const alone = new Worker({ target: "127.0.0.1:1", logger: new TestLogger() }).handle("q", () => undefined);
  const started = assert.rejects(alone.start(), (error) => !(error instanceof Unavailable));
  await alone.stop();
  await started;
});
