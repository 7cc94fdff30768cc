/** Waits of one client share calls: many of them cost the server few calls, and each keeps to its own time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import type { ServerWritableStream } from "@grpc/grpc-js";
import { Client, ClientClosed, defineJob, type JobEnd, TooLarge, WaitTimeout } from "@jobline/client";
import { JobState, WaitRequestSchema, WaitResponseSchema } from "@jobline/client/v1";
import { Connection } from "../src/connection.js";
import { resolved } from "../src/identity.js";
import { skip } from "../src/skipped_time.js";
import { SharedWaits, type Waiter } from "../src/waits/shared_waits.js";
import { bytesOf, fakeServer } from "./fake_server.js";
import { Guard, keyOf } from "./guarded.js";
import { clientOf, ServerProcess, until, workerOf } from "./server.js";

const kind = defineJob<number, number>({ queue: "waits" });

/** A server that answers no wait by itself: it keeps the calls and what they ask. */
class Calls {
  readonly open = new Map<ServerWritableStream<Buffer, Uint8Array>, bigint[]>();
  made = 0;
  target = "";

  static async start(): Promise<Calls> {
    const calls = new Calls();
    calls.target = await fakeServer({
      Wait: (call) => {
        const { ids, timeout } = fromBinary(WaitRequestSchema, call.request);
        if (timeout?.seconds === 0n) return call.end();
        calls.made += 1;
        calls.open.set(call, ids);
        call.on("cancelled", () => calls.open.delete(call));
        return undefined;
      },
    });
    return calls;
  }

  get asked(): bigint[] {
    return [...this.open.values()].flat();
  }

  /** Tells of the end of a job on each call that asks for it. */
  complete(id: bigint): void {
    for (const [call, ids] of this.open) {
      if (ids.includes(id)) call.write(bytesOf(WaitResponseSchema, { id, state: JobState.COMPLETED }));
    }
  }
}

test("waits that begin together share a call; each ends by itself", async () => {
  const calls = await Calls.start();
  await using client = new Client({ target: calls.target });
  const ids = Array.from({ length: 1_000 }, (_, index) => BigInt(index + 1));
  const stopped = new AbortController();
  const waits = ids.map((id) =>
    client.wait(id, {
      timeout: id === 7n ? "1500ms" : "60s",
      ...(id === 8n && { signal: stopped.signal }),
    }),
  );
  const twice = client.wait(9n);
  const late = assert.rejects(waits[6] as Promise<JobEnd>, (error: WaitTimeout) => {
    assert.ok(error instanceof WaitTimeout);
    return error.id === 7n && error.message === "job 7 has not ended within 1.5 s";
  });
  const aborted = assert.rejects(waits[7] as Promise<JobEnd>, /enough/);
  await until("the server is asked", () => calls.asked.length >= 1_000);
  assert.equal(calls.made, 1);
  stopped.abort(new Error("enough"));
  const began = performance.now();
  await Promise.all([aborted, late]);
  assert.ok(performance.now() - began < 10_000);
  for (const id of ids) calls.complete(id);
  const ends = await Promise.all(waits.filter((_, index) => index !== 6 && index !== 7));
  assert.equal(ends.length, 998);
  assert.equal((await twice).id, 9n);
  await until("nothing is asked any more", () => calls.open.size === 0);
});

test("waits that begin one after the other do not hold a call each, and no job is left out", async () => {
  const calls = await Calls.start();
  const connection = new Connection(resolved({ target: calls.target }), 20_000);
  const waits = new SharedWaits(connection);
  const ended: bigint[] = [];
  const waiter: Waiter = { ended: ({ id }) => ended.push(id), failed: assert.fail };
  for (let id = 1n; id <= 60n; id += 1n) {
    waits.add([id], waiter);
    const made = calls.made;
    await until("it is asked for", () => calls.made > made);
    for (let from = 1n; from <= id; from += 1n) assert.ok(calls.asked.includes(from), `${from} of ${id}`);
  }
  assert.equal(calls.made, 60);
  await until("what was replaced is cancelled", () => calls.open.size <= 8, 10);
  assert.equal(new Set(calls.asked).size, 60);
  for (let id = 1n; id <= 60n; id += 1n) calls.complete(id);
  await until("all have ended", () => ended.length === 60);
  waits.close();
  connection.close();
});

test("more than a call takes is asked in several; too many ids of one wait are refused", async () => {
  const calls = await Calls.start();
  await using client = new Client({ target: calls.target });
  const all = async (first: number) => {
    const ids = Array.from({ length: 10_000 }, (_, index) => BigInt(first + index));
    for await (const _ of client.waitAll(ids));
  };
  const ending = Promise.all([all(1), all(10_001)].map((one) => assert.rejects(one, ClientClosed)));
  await until("all are asked", () => calls.asked.length >= 20_000);
  assert.deepEqual(
    [...calls.open.values()].map((ids) => ids.length),
    [10_000, 10_000],
  );
  const many = Array.from({ length: 10_001 }, (_, index) => BigInt(index));
  await assert.rejects(client.waitAll(many).next(), TooLarge);
  await assert.rejects(client.wait(1n, { timeout: "2h" }), /timeout: is at most 3600 s/);
  await client.close();
  await ending;
  await assert.rejects(client.wait(1n), ClientClosed);
});

test("time that a test skips at a server ends waits there, and not elsewhere", async () => {
  const [here, there] = [await Calls.start(), await Calls.start()];
  await using client = new Client({ target: here.target });
  await using other = new Client({ target: there.target });
  const wait = client.wait(1n, { timeout: "1h" });
  const going = other.wait(1n, { timeout: "1h" });
  await until("both are asked", () => here.made + there.made === 2);
  skip(here.target, 3_599_000);
  skip(here.target, 2_000);
  await assert.rejects(wait, { name: "WaitTimeout", message: "job 1 has not ended within 3600 s" });
  there.complete(1n);
  assert.equal((await going).state, "completed");
});

test("waits go on over restarts of the server, and beside them pushes are quick", async () => {
  await using server = await ServerProcess.start();
  await using client = clientOf(server);
  const jobs = Array.from({ length: 6_000 }, (_, n) => n);
  const ids: bigint[] = [];
  for (const _ of [1, 2]) ids.push(...(await client.pushMany(kind, jobs)).map(({ id }) => id));
  const waits = ids.map((id) => client.wait(id, { timeout: "1h" }));
  await assert.rejects(client.wait(ids[0] as bigint, { timeout: "1s" }), WaitTimeout);
  for (let n = 0; n < 20; n += 1) await client.push("other", n);
  await server.restart();
  const worker = workerOf(server, { concurrency: 64 }).handle(kind, (n) => n);
  await worker.start();
  const states = new Set((await Promise.all(waits)).map(({ state }) => state));
  assert.deepEqual([...states], ["completed"]);
  await worker.stop();
});

test("a wait goes on with another token when its own has ended", async () => {
  using guard = new Guard();
  await using server = await ServerProcess.start(guard.auth({ name: "first" }));
  let name = "first";
  await using client = clientOf(server, { token: () => keyOf(name) });
  await using fixed = clientOf(server, { token: keyOf("first") });
  const { id } = await client.push(kind, 1);
  const wait = client.wait(id);
  const refused = assert.rejects(fixed.wait(id), {
    name: "Unauthenticated",
    message: "the token has expired",
  });
  await new Promise(setImmediate); // both are asked
  name = "second";
  guard.auth({ name: "second", caller: "first", ended: "first" });
  await refused;
  await using worker = workerOf(server, { token: keyOf("second") }).handle(kind, (n) => n);
  await worker.start();
  assert.equal((await wait).state, "completed");
});

test("an end that the server tells twice, by a call and the one in its place, is told once", async () => {
  const calls = await Calls.start();
  await using client = new Client({ target: calls.target });
  const ends: bigint[] = [];
  const first = client.wait(1n).then(({ id }) => ends.push(id));
  await until("it is asked for", () => calls.made === 1);
  const second = client.wait(2n).then(({ id }) => ends.push(id));
  await until("both are asked for", () => calls.made === 2);
  calls.complete(1n);
  await first;
  calls.complete(2n);
  await second;
  assert.deepEqual(ends, [1n, 2n]);
});
