/** What a worker does if the server breaks the protocol of its stream: it opens another one, after a pause. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { Client, Worker } from "@jobline/client";
import { JobState, WaitResponseSchema } from "@jobline/client/v1";
import { bytesOf, confirmAll, fakeServer, refusal, say } from "./fake_server.js";
import { clientOf, ServerProcess, signal, TestLogger, until, workerOf } from "./server.js";

const OPENED = { opened: { session: "s", heartbeatInterval: { seconds: 10n } } };
const NOT_A_FRAME = Buffer.from("\xff\xff\xff'nope'", "latin1");

test("frames that cannot be read end their stream, and the worker opens another", async () => {
  const runOf = (firstId: bigint, count: number) => ({
    runs: [
      { firstId, delivery: 1n, leaseMs: 30_000n, queue: "q", payloads: Array(count).fill(Buffer.from("1")) },
    ],
  });
  let streams = 0;
  const target = await fakeServer({
    Stream: (call) => {
      streams += 1;
      confirmAll(call);
      if (streams === 4)
        return say(call, { opened: { ...OPENED.opened, heldIds: [7n, 8n], heldDeliveries: [1n] } });
      say(call, OPENED);
      if (streams === 1) call.write(NOT_A_FRAME);
      else if (streams === 2) say(call, runOf(2n ** 64n - 1n, 3));
      else if (streams === 3) say(call, { jobs: [{ id: 0n, delivery: 1n, queue: "q" }] });
      else say(call, runOf(7n, 1));
      return undefined;
    },
  });
  const handled = signal<bigint>();
  const logger = new TestLogger();
  const worker = new Worker({ target, logger }).handle("q", (_: unknown, { id }) => handled.resolve(id));
  const finished = worker.run();
  assert.equal(await handled.promise, 7n);
  assert.equal(logger.lines.filter((line) => line.includes("cannot be read")).length, 4);
  assert.ok(logger.has("2 jobs are held, by 1 leases"), logger.lines.join("\n"));
  await worker.stop();
  await finished;
});

test("a server that asks to move at once, again and again, is not asked without pauses", async () => {
  const opened: number[] = [];
  const target = await fakeServer({
    Stream: (call) => {
      opened.push(performance.now());
      confirmAll(call);
      say(call, OPENED, { goaway: { reason: "moving" } });
      call.end();
    },
  });
  const worker = new Worker({ target, logger: new TestLogger() }).handle("q", () => undefined);
  await worker.start();
  await until("five streams were opened", () => opened.length >= 5);
  await worker.stop();
  const [first = 0, , , , fifth = 0] = opened;
  assert.ok(fifth - first > 700, `at least 50, 100, 200 and 400 ms lie between, not ${fifth - first} in all`);
});

test("a token that has ended is renewed, however often the server was away before", async () => {
  const answers = [
    ...Array(4).fill({ code: status.UNAVAILABLE, details: "away" }),
    ...Array(2).fill(refusal(status.UNAUTHENTICATED, "TOKEN_EXPIRED")),
  ];
  let asked = 0;
  const target = await fakeServer({
    Stream: (call) => {
      const answer = answers.shift();
      if (answer) return call.emit("error", answer);
      confirmAll(call);
      return say(call, OPENED);
    },
  });
  const token = () => {
    asked += 1;
    return `t${asked}`;
  };
  const worker = new Worker({ target, logger: new TestLogger(), token });
  worker.handle("q", () => undefined);
  await worker.start();
  assert.equal(asked, 7);
  await worker.stop();
});

test("a server that sends far more jobs than were asked for is left, and what it sent does not count", async () => {
  let streams = 0;
  const target = await fakeServer({
    Stream: (call) => {
      streams += 1;
      confirmAll(call);
      say(call, OPENED);
      const payloads = Array(streams < 3 ? 109 : 4).fill(Buffer.from("1"));
      say(call, {
        runs: [{ firstId: 1n, delivery: BigInt(streams), leaseMs: 30_000n, queue: "q", payloads }],
      });
    },
  });
  const handled = new Map<bigint, bigint>();
  const logger = new TestLogger();
  const worker = new Worker({ target, logger, window: 4 });
  worker.handle("q", (_: unknown, { id, delivery }) => handled.set(id, delivery) && undefined);
  const finished = worker.run();
  await until("four jobs were handled", () => handled.size === 4);
  assert.deepEqual([...handled.values()], [3n, 3n, 3n, 3n]);
  const lines = logger.lines.filter((line) =>
    line.includes("more jobs than were asked for: 109 at hand, of 4"),
  );
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? "", /^the stream to .* broke, trying again in \d\.\d s: /);
  await worker.stop();
  await finished;
});

test("jobs that handlers have ended themselves are no reason to leave a server", async () => {
  await using server = await ServerProcess.start();
  await using client = clientOf(server);
  const logger = new TestLogger();
  const worker = workerOf(server, { logger, window: 1, concurrency: 1 });
  const handled = signal<bigint>();
  const ids: bigint[] = [];
  worker.handle("q", async (_: unknown, { id, delivery }) => {
    if (id !== ids[0]) return handled.resolve(id);
    await client.admin.raw.ack({ ids: [id], deliveries: [delivery] });
    // The server has a place again, and this handler still runs.
    const next = ids[1] as bigint;
    const isActive = async () =>
      (await client.admin.jobs.getJob({ job: { case: "id", value: next } })).job?.state === JobState.ACTIVE;
    while (!(await isActive()));
  });
  ids.push(...(await client.pushMany("q", [1, 2])).map(({ id }) => id));
  await worker.start();
  assert.equal(await handled.promise, ids[1]);
  await worker.stop();
  assert.ok(!logger.has("asked for") && !logger.has("broke"), logger.lines.join("\n"));
});

test("what a server says reaches the log in one line that steers no terminal", async () => {
  const evil = "moving\n2026 ERROR \u001b[2J\u202ehidden";
  const target = await fakeServer({
    Stream: (call) => {
      confirmAll(call);
      say(call, OPENED, { goaway: { reason: evil, retryDelay: { seconds: 60n } } });
      call.end();
    },
    Push: (_, answer) => answer({ code: 9, details: evil }),
    Wait: (call) => {
      const end = { id: 5n, state: JobState.DEAD, error: { type: "E", message: evil } };
      call.write(bytesOf(WaitResponseSchema, end));
      call.end();
    },
  });
  const plain = "moving 2026 ERROR \ufffd[2J\ufffdhidden";
  const logger = new TestLogger();
  const worker = new Worker({ target, logger }).handle("q", () => undefined);
  const started = worker.start();
  await until("it is asked to move", () => logger.has("asks to move"));
  assert.ok(logger.has(`the server asks to move: ${plain}`), logger.lines.join("|"));
  await worker.stop();
  await started.catch(() => undefined);
  await using client = new Client({ target });
  await assert.rejects(client.push("q", 1), { name: "FailedPrecondition", message: plain });
  const message = `job 5 is dead (unspecified): E: ${plain}`;
  await assert.rejects(client.result("q", 5n), { name: "JobDead", message });
});
