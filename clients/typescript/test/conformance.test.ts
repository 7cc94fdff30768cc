/** The vectors that every client must pass: `make conformance` starts their servers. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { Client as Channel, credentials } from "@grpc/grpc-js";
import { Client, JoblineError, Worker } from "@jobline/client";
import * as v1 from "@jobline/client/v1";
import { errorOf } from "../src/status.js";
import { TestLogger } from "./server.js";
import { type Fields, filled, type Json, Mismatch, match, matches, type Variables } from "./vector_format.js";
import { addHandlers, type VectorHandler } from "./vector_handlers.js";

interface Step {
  call?: string;
  client?: "push" | "push_and_wait";
  pause?: number;
  with?: Json;
  expect?: Fields;
  error?: Fields;
  within?: number;
  read?: "some";
  hold?: string;
  held?: string;
}
interface Vector {
  name: string;
  server?: "small";
  worker?: { version?: string; handlers: VectorHandler[] };
  steps: Step[];
}

const PATH = process.env.CONFORMANCE_VECTORS;
const [MAIN = "", SMALL = ""] = (process.env.CONFORMANCE_SERVERS ?? "").split(",");
const ALL: { vectors: Vector[]; must_fail: Vector[] } = PATH
  ? JSON.parse(readFileSync(PATH, "utf8"))
  : { vectors: [], must_fail: [] };
const CALL_MILLISECONDS = 30_000;

const SERVICES = new Map<string, DescService>();
for (const value of Object.values(v1)) {
  if (typeof value === "object" && "kind" in value && value.kind === "service")
    SERVICES.set(value.name, value);
}

describe("conformance", { concurrency: 12, skip: PATH ? false : "`make conformance` runs it" }, () => {
  for (const vector of ALL.vectors) test(vector.name, () => run(vector));
  for (const vector of ALL.must_fail) {
    test(`must fail: ${vector.name}`, () => assert.rejects(run(vector), Mismatch));
  }
});

const stamp = (after: number): string => `${new Date(Date.now() + after).toISOString().slice(0, 19)}Z`;

async function run(vector: Vector): Promise<void> {
  const address = vector.server === "small" ? SMALL : MAIN;
  const queue = `conformance-${randomBytes(16).toString("hex")}`;
  const known: Variables = new Map([
    ["queue", queue],
    ["random16", randomBytes(8).toString("hex")],
    ["past", stamp(-3_600_000)],
    ["soon", stamp(3_600_000)],
  ]);
  await using client = new Client(address);
  const { version = "", handlers = [] } = vector.worker ?? {};
  const settings = { softStop: "5s", hardStop: "1s", logger: new TestLogger() };
  await using worker = new Worker({ target: address, ...(version && { version }), ...settings });
  if (vector.worker) {
    addHandlers(worker, queue, handlers);
    await worker.start();
  }
  const held: Held = new Map();
  try {
    for (const [index, step] of vector.steps.entries()) {
      try {
        await runStep({ client, address, held }, step, known);
      } catch (error) {
        if (error instanceof Mismatch) throw new Mismatch(`step ${index + 1}: ${error.message}`);
        throw error;
      }
    }
  } finally {
    for (const { replies } of held.values()) await replies.return?.();
  }
}

/** The streams that a vector keeps open, by name. */
type Held = Map<string, { replies: AsyncIterator<Message>; kind: DescMessage }>;
interface Tried {
  client: Client;
  address: string;
  held: Held;
}

/** Makes a step, again for at most `within` seconds, until what comes back is as expected. */
async function runStep(on: Tried, step: Step, known: Variables): Promise<void> {
  if (step.pause !== undefined) return sleep(1000 * step.pause);
  const until = Date.now() + 1000 * (step.within ?? 0);
  for (;;) {
    const tried: Variables = new Map(known);
    try {
      await tryStep(on, step, tried);
      for (const [name, value] of tried) known.set(name, value);
      return;
    } catch (error) {
      if (!(error instanceof Mismatch) || Date.now() >= until) throw error;
      await sleep(50);
    }
  }
}

async function tryStep(on: Tried, step: Step, known: Variables): Promise<void> {
  let got: Json;
  try {
    if (step.held) got = await rest(on.held, step, known);
    else got = step.call ? await call(on, step, known) : await clientVerb(on.client, step, known);
  } catch (error) {
    if (!(error instanceof JoblineError)) throw error;
    if (!step.error) throw new Mismatch(`refused with ${JSON.stringify(factsOf(error))}: ${error.message}`);
    return match(step.error, factsOf(error), known, "error");
  }
  if (step.error) throw new Mismatch(`it was not refused: ${JSON.stringify(got)}`);
  match(step.expect ?? null, got, known);
}

function factsOf(error: JoblineError): Fields {
  const { reason, definite, retryable } = error;
  const { code = "" } = error.facts;
  return { code, reason, field: error.field ?? "", definite, retryable, kind: error.constructor.name };
}

async function call({ client, address, held }: Tried, step: Step, known: Variables): Promise<Json> {
  const [serviceName = "", methodName] = (step.call ?? "").split("/");
  const service = SERVICES.get(serviceName);
  const method = service?.methods.find(({ name }) => name === methodName);
  assert.ok(service && method, `no method ${step.call}`);
  const given = filled(step.with ?? {}, known);
  const requests = (Array.isArray(given) ? given : [given]).map((one) => fromJson(method.input, one));
  const [request = create(method.input)] = requests;
  const stub = client.admin.service(service) as Record<string, (request: Message, how: object) => unknown>;
  const bare = stub[method.localName];
  if (method.methodKind === "unary" && bare) {
    return jsonOf(method.output, await (bare(request, { timeout: CALL_MILLISECONDS }) as Promise<Message>));
  }
  const replies =
    method.methodKind === "server_streaming" && bare
      ? (bare(request, { timeout: CALL_MILLISECONDS }) as AsyncIterable<Message>)
      : bidirectional(address, service, method, requests, step.read === "some");
  const iterator = replies[Symbol.asyncIterator]();
  if (step.hold) {
    await held.get(step.hold)?.replies.return?.();
    held.set(step.hold, { replies: iterator, kind: method.output });
  }
  try {
    return await read(iterator, method.output, step, known);
  } finally {
    if (!step.hold) await iterator.return?.();
  }
}

/** What comes on a stream that was kept, from now on. */
function rest(held: Held, step: Step, known: Variables): Promise<Json> {
  const kept = held.get(step.held ?? "");
  assert.ok(kept, `no stream is held as ${step.held}`);
  return read(kept.replies, kept.kind, step, known);
}

/** All messages of a stream, or with `read: some` those until they are as expected. */
async function read(
  replies: AsyncIterator<Message>,
  kind: DescMessage,
  step: Step,
  known: Variables,
): Promise<Json> {
  const messages: Json[] = [];
  for (;;) {
    const next = await replies.next();
    if (next.done) return { messages };
    messages.push(jsonOf(kind, next.value));
    if (step.read === "some" && matches(step.expect ?? {}, { messages }, new Map(known))) return { messages };
  }
}

/** Makes the one call that streams both ways, which the client's stubs leave to its worker. */
async function* bidirectional(
  address: string,
  service: DescService,
  method: DescMethod,
  requests: readonly Message[],
  isKeptOpen: boolean,
): AsyncGenerator<Message> {
  const channel = new Channel(address, credentials.createInsecure());
  const stream = channel.makeBidiStreamRequest(
    `/${service.typeName}/${method.name}`,
    (request: Message) => Buffer.from(toBinary(method.input, request)),
    (data: Buffer) => fromBinary(method.output, data),
    { deadline: Date.now() + CALL_MILLISECONDS },
  );
  try {
    for (const request of requests) stream.write(request);
    if (!isKeptOpen) stream.end();
    yield* stream as AsyncIterable<Message>;
  } catch (error) {
    throw errorOf(error);
  } finally {
    stream.on("error", () => undefined);
    stream.cancel();
    channel.close();
  }
}

function jsonOf(kind: DescMessage, message: Message): Json {
  return toJson(kind, message) as JsonValue as Json;
}

/** Calls the hand-written part of the client. */
async function clientVerb(client: Client, step: Step, known: Variables): Promise<Json> {
  const given = filled(step.with ?? {}, known) as Fields;
  const text = (name: string) => given[name] as string | undefined;
  const [name, jobKey, uniqueKey] = [text("name"), text("job_key"), text("unique_key")];
  const options = {
    ...(name !== undefined && { name }),
    ...(jobKey !== undefined && { jobKey }),
    ...(uniqueKey !== undefined && { uniqueKey }),
    ...(typeof given.max_attempts === "number" && { maxAttempts: given.max_attempts }),
  };
  const queue = String(given.queue);
  if (step.client === "push_and_wait") {
    const timeout = 1000 * Number(given.timeout);
    const result = await client.pushAndWait<Json, Json>(queue, given.payload ?? null, {
      ...options,
      timeout,
    });
    return { result };
  }
  const { id, outcome, ackLevel } = await client.push<Json>(queue, given.payload ?? null, options);
  return { id: String(id), outcome: outcome.toUpperCase(), ack_level: ackLevel.toUpperCase() };
}
