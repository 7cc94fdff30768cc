/** The session towards a server that confirms nothing: one that is slow, and one that breaks the protocol. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Worker } from "@jobline/client";
import { StreamOpenSchema, StreamRequestSchema, StreamResponseSchema } from "@jobline/client/v1";
import { Session } from "../src/stream/session.js";
import { UNCONFIRMED_MAX } from "../src/stream/settles.js";
import { confirmAll, fakeServer, say } from "./fake_server.js";
import { TestLogger, until } from "./server.js";

const WINDOW = 8;
/** What is settled at most without a confirm before the server is left. */
const BOUND = (UNCONFIRMED_MAX + 6) * WINDOW + 100 + 2 * WINDOW + 100;
const OPENED = { session: "s", heartbeatInterval: { seconds: 10n } };

const run = (firstId: bigint, count: number) => ({
  runs: [
    { firstId, delivery: 1n, leaseMs: 30_000n, queue: "q", payloads: Array(count).fill(Buffer.from("1")) },
  ],
});

/** A worker that settles at once, and a server that decides at once and commits later. */
class Unconfirmed {
  readonly session = new Session(create(StreamOpenSchema, { queues: [{ queue: "q" }] }), WINDOW, 1 << 20);
  window = WINDOW;
  /** What the server has handed out and not seen settled. */
  undecided = 0;
  settled = 0;
  seqs: bigint[] = [];

  constructor() {
    this.session.connect(0);
    this.read();
    this.receive({ opened: OPENED });
    this.read();
  }

  private receive(frame: MessageInitShape<typeof StreamResponseSchema>): void {
    this.session.handleFrame(0, create(StreamResponseSchema, frame));
  }

  read(): void {
    for (let frame = this.session.nextFrame(0); frame; frame = this.session.nextFrame(0)) {
      for (const { seq, ackIds } of frame.settles) {
        this.seqs.push(seq);
        this.undecided -= ackIds.length;
      }
      if (frame.window) this.window = frame.window.maxInFlight;
    }
  }

  /** Hands out one job, which is settled. */
  send(): void {
    const id = BigInt(this.settled + 1);
    this.receive(run(id, 1));
    assert.ok(this.session.ack(id, 1n));
    this.settled += 1;
    this.undecided += 1;
  }

  confirmAll(): void {
    for (let seq = this.seqs.shift(); seq !== undefined; seq = this.seqs.shift()) {
      this.receive({ confirms: [{ seq }] });
      this.read();
    }
  }

  reconnect(heldIds: bigint[]): void {
    this.session.disconnect();
    this.session.connect(0);
    this.read();
    this.receive({ opened: { ...OPENED, resumed: true, heldIds, heldDeliveries: heldIds.map(() => 1n) } });
    this.read();
  }
}

const UNCONFIRMED = { reason: "UNCONFIRMED", message: /has not confirmed/ };

test("a server that commits nothing for long is asked for jobs all the same: it keeps to the window", () => {
  const both = new Unconfirmed();
  for (let round = 0; round < 50; round += 1) {
    for (let room = both.window - both.undecided; room > 0; room -= 1) both.send();
    both.read(); // as large as settles can be: all goes out together
  }
  assert.equal(both.settled, (UNCONFIRMED_MAX + 1) * WINDOW);
  assert.equal(both.window, WINDOW);
  both.confirmAll();
  both.send();
  both.read();
  both.confirmAll();
  assert.ok(both.session.isConfirmed);
});

test("a server that delivers and never confirms is left; all is settled again, and none is lost", () => {
  const both = new Unconfirmed();
  assert.throws(() => {
    while (both.settled < 2 * BOUND) {
      both.send();
      both.read();
    }
  }, UNCONFIRMED);
  assert.ok(both.settled < BOUND);
  assert.equal(both.window, 0);
  const told = both.seqs;
  both.seqs = [];
  both.reconnect([]);
  assert.deepEqual(both.seqs, told);
  assert.equal(both.window, 0);
  both.confirmAll();
  assert.equal(both.window, WINDOW);
  assert.ok(both.session.isConfirmed);
});

test("a server that says of each stream that other jobs are held is left: each is to be confirmed", () => {
  const both = new Unconfirmed();
  let next = 1;
  assert.throws(() => {
    while (next < 2 * BOUND) {
      both.reconnect(Array.from({ length: 100 }, (_, index) => BigInt(next + index)));
      next += 100;
    }
  }, UNCONFIRMED);
  assert.ok(next < BOUND);
});

test("more jobs than any window has cannot be held", () => {
  const both = new Unconfirmed();
  assert.throws(() => both.reconnect(Array(200_001).fill(1n)), /200001 jobs are held/);
  assert.ok(!both.session.isOpen);
});

test("a worker leaves a server that confirms nothing, and settles all again on the next stream", async () => {
  let streams = 0;
  let sent = 0;
  const handled = new Set<bigint>();
  const again = new Set<bigint>();
  const windows: number[] = [];
  const target = await fakeServer({
    Stream: (call) => {
      streams += 1;
      say(call, { opened: OPENED });
      if (streams > 1) {
        confirmAll(call);
        call.on("data", (bytes: Buffer) => {
          for (const { ackIds } of fromBinary(StreamRequestSchema, bytes).settles) {
            for (const id of ackIds) again.add(id);
          }
        });
        return;
      }
      call.on("error", () => undefined);
      call.on("data", (bytes: Buffer) => {
        const { window } = fromBinary(StreamRequestSchema, bytes);
        if (window) windows.push(window.maxInFlight);
      });
      const next = () => {
        if (streams > 1 || sent > 1_000) return;
        if (handled.size === sent) {
          sent += 1;
          say(call, run(BigInt(sent), 1));
        }
        setImmediate(next);
      };
      next();
    },
  });
  const logger = new TestLogger();
  const worker = new Worker({ target, logger, window: 1, concurrency: 1 });
  worker.handle("q", (_: unknown, { id }) => handled.add(id) && undefined);
  await worker.start();
  await until("all is settled again", () => streams > 1 && again.size === handled.size);
  assert.ok(handled.size < 200);
  assert.deepEqual(windows, [1, 0]);
  assert.ok(logger.has("the server sends jobs and has not confirmed"), logger.lines.join("|"));
  await worker.stop();
});
