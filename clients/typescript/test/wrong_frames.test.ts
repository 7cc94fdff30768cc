/** What a worker does if the server breaks the protocol of its stream: it opens another one, after a pause. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "@jobline/client";
import { confirmAll, fakeServer, say } from "./fake_server.js";
import { signal, TestLogger, until } from "./server.js";

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
      say(call, OPENED);
      if (streams === 1) call.write(NOT_A_FRAME);
      else if (streams === 2) say(call, runOf(2n ** 64n - 1n, 3));
      else if (streams === 3) say(call, { jobs: [{ id: 0n, delivery: 1n, queue: "q" }] });
      else say(call, runOf(7n, 1));
    },
  });
  const handled = signal<bigint>();
  const logger = new TestLogger();
  const worker = new Worker({ target, logger }).handle("q", (_: unknown, { id }) => handled.resolve(id));
  const finished = worker.run();
  assert.equal(await handled.promise, 7n);
  assert.equal(logger.lines.filter((line) => line.includes("cannot be read")).length, 3);
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
