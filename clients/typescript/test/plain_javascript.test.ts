/** What the compiler keeps programs in TypeScript from: plain JavaScript gets a clear sentence, at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Cancel,
  Client,
  Context,
  defineJob,
  FlowJob,
  InvalidArgument,
  KeyMap,
  LeasedJob,
  PayloadCodec,
  RateLimited,
  WaitFor,
  Worker,
} from "@jobline/client";
import { testJobline } from "@jobline/client/testing";
import { settlementOf } from "../src/worker/settling.js";

// biome-ignore lint/suspicious/noExplicitAny: as a program without types
type Any = any;

const client: Any = new Client({ target: "127.0.0.1:1", timeout: "1s" });
const kind: Any = defineJob({ queue: "q", name: "n" });
const worker = (): Any => new Worker({ target: "127.0.0.1:1" });
const [Clients, Workers, Codecs, Maps]: Any[] = [Client, Worker, PayloadCodec, KeyMap];
const key = Buffer.alloc(32, 1);

const WRONG: [what: string, call: () => unknown, says: RegExp][] = [
  [
    "a queue in an object",
    () => worker().handle({ queue: "q" }, () => 1),
    /^job: is the name of a queue, or what/,
  ],
  ["no handler", () => worker().handle(kind), /^handler: is a function, not undefined$/],
  [
    "no queue",
    () => worker().handle(undefined, () => 1),
    /^job: is the name of a queue, or what .* not undefined$/,
  ],
  [
    "no options of a batch",
    () => worker().handleBatch(kind, () => []),
    /^options: is an object, not a value of type f/,
  ],
  [
    "no batch handler",
    () => worker().handleBatch(kind, { size: 2 }),
    /^handler: is a function, not undefined$/,
  ],
  [
    "a misspelt wait",
    () => worker().handleBatch(kind, { size: 2, waits: 1 }, () => []),
    /^waits: there is no such/,
  ],
  ["null for options", () => new Workers(null), /^options: is an object, not null$/],
  ["a text for a signal", () => new Workers({ signals: "SIGTERM" }), /^signals: is an array of names/],
  [
    "a misspelt signal",
    () => new Workers({ signals: ["SIGTERM", "SIGTRM"] }),
    /^signals: SIGTRM is no signal that a program/,
  ],
  [
    "what stops nobody politely",
    () => new Workers({ signals: ["SIGKILL"] }),
    /^signals: SIGKILL is no signal/,
  ],
  [
    "half a priority",
    () => client.push(kind, 1, { priority: 1.5 }),
    /^options\.priority: is a whole number up to 2147483647, not the number 1\.5$/,
  ],
  [
    "attempts as text",
    () => client.push(kind, 1, { maxAttempts: "5" }),
    /^options\.maxAttempts: is a whole number up to 2147483647, not a value of type string$/,
  ],
  [
    "slots beyond 32 bits",
    () => client.push(kind, 1, { slots: 2 ** 31 }),
    /^options\.slots: is a whole number/,
  ],
  [
    "half a job that is kept",
    () => client.push(kind, 1, { retention: { count: 0.5 } }),
    /^options\.retention\.count: is a whole number/,
  ],
  [
    "a layer that is none",
    () => new Workers({ middleware: [1] }),
    /^middleware\[0\]: is one of functions, not the n/,
  ],
  ["a state that is none", () => new Workers({ state: {} }), /^state: is a function/],
  [
    "half a logger",
    () => new Workers({ logger: { info() {} } }),
    /^logger: is what has the methods info, warn/,
  ],
  ["queues in an array", () => new Workers({ queues: ["q"] }), /^queues: is an object, not an array$/],
  ["a number for a client", () => new Clients(7070), /^options: is an object, not the number 7070$/],
  ["a codec that is none", () => new Clients({ codec: {} }), /^codec: is a PayloadCodec/],
  ["a layer alone", () => new Clients({ middleware: () => 1 }), /^middleware: is an array of functions/],
  [
    "a push of no job",
    () => client.push({ name: "n" }, 1),
    /^job: is the name of a queue, or what defineJob/,
  ],
  ["null for options", () => client.push(kind, 1, null), /^options: is an object, not null$/],
  [
    "a signal that is none",
    () => client.push(kind, 1, { signal: 5 }),
    /^signal: is an AbortSignal, not the number 5$/,
  ],
  ["null for options", () => client.pushMany(kind, [1], null), /^options: is an object, not null$/],
  ["no array of jobs", () => client.pushMany(kind, new Set([1])), /^jobs: pushMany\(\) takes an array/],
  ["null for options", () => client.pushAndWait(kind, 1, null), /^options: is an object, not null$/],
  ["a number for an id", () => client.wait(5), /^id: is a bigint, as a push returns it, not the number 5$/],
  ["an id as text", () => client.result(kind, "5"), /^id: is a bigint/],
  ["ids as numbers", () => client.waitAll([5]).next(), /^ids: is a bigint/],
  ["a misspelt timeout", () => client.wait(5n, { timeot: 1 }), /^timeot: there is no such option$/],
  ["a batch by a number", () => client.batchOf(5), /^id: is a bigint/],
  ["a misspelt setting", () => client.batch({ nam: "b" }), /^nam: there is no such option$/],
  [
    "a callback without a job",
    () => client.batch({ onSuccess: { payload: 1 } }),
    /^job: is the name of a queue/,
  ],
  ["an entity without a key", () => client.entity("kind"), /^key: is a text, not undefined$/],
  ["a flow of no FlowJob", () => client.flow({ queue: "q" }), /^jobs\[0\]: is one of FlowJobs/],
  [
    "children that are none",
    () => FlowJob.of(kind, 1, { children: [kind] } as Any),
    /^children\[0\]: is one of FlowJobs/,
  ],
  ["a misspelt option", () => FlowJob.of(kind, 1, { child: [] } as Any), /^child: there is no such option$/],
  ["children that are none", () => new WaitFor({} as Any), /^children\[0\]: is one of FlowJobs/],
  ["a limiter that is none", () => new RateLimited("1s", 5 as Any), /^limiter: is the name of one/],
  ["no settings", () => client.schedule("s", kind, 1), /^options: is an object, not undefined$/],
  [
    "a misspelt setting",
    () => client.schedule("s", kind, 1, { cronn: "* * * * *" }),
    /^cronn: there is no such/,
  ],
  ["no declaration", () => defineJob(undefined as Any), /^declaration: is an object, not undefined$/],
  [
    "a schema that is none",
    () => defineJob({ queue: "q", schema: {} as Any }),
    /^schema: is what has a method `parse`/,
  ],
  ["a misspelt codec", () => new Codecs({ key: {} }), /^key: there is no such option$/],
  ["keys that are no ring", () => new Codecs({ keys: { k: key } }), /^keys: is a KeyMap, or another KeyRing/],
  ["a key for tags as text", () => new Codecs({ tagKey: "x".repeat(32) }), /^tagKey: has 32 bytes/],
  [
    "a short key",
    () => new Maps({ k: key.subarray(16) }, () => "k"),
    /^keys: a key is a .* 32 bytes, and "k" has 16$/,
  ],
  ["a key as text", () => new Maps({ k: "x".repeat(32) }, () => "k"), /^keys: .* and "k" is no Uint8Array$/],
  ["an empty id", () => new Maps({ "": key }, () => ""), /^keys: the id of a key is a text of 1 … 64 bytes/],
  [
    "an id that is too long",
    () => new Maps(new Map([["k".repeat(65), key]]), () => "k"),
    /bytes, and one has 65$/,
  ],
  ["no current id", () => new Maps({ k: key }), /^currentId: is a function, not undefined$/],
  ["a misspelt option", () => testJobline({ strt: 1 } as Any), /^strt: there is no such option$/],
];

for (const [what, call, says] of WRONG) {
  test(`${what} is refused: ${says.source}`, async () => {
    const error: unknown = await (async () => call())().catch((caught: unknown) => caught);
    assert.ok(error instanceof InvalidArgument, String(error));
    assert.match(error.message, says);
  });
}

test("what a handler says wrongly is refused in the handler, or made a text", () => {
  const job = LeasedJob.ofMessage({ id: 1n, delivery: 1n, queue: "q", payload: new Uint8Array() } as Any);
  const host: Any = { report: () => assert.fail("it is not sent") };
  const context = new Context(job, host, undefined);
  for (const percent of ["50", null, Number.NaN, 101] as Any[]) {
    assert.throws(() => context.progress(percent), InvalidArgument);
  }
  const settlement = settlementOf(context, new Cancel(new TypeError("as an error") as Any));
  assert.ok(typeof settlement === "object" && settlement.kind === "fail");
  assert.equal(settlement.item.error?.message, "TypeError: as an error");
});
