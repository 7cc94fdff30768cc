import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, beforeEach, test } from "node:test";
import { type Client, Dead, defineJob, NewJob, PayloadCodec, Snooze } from "@jobline/client";
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { clientOf, ServerProcess, storedJob, until, workerOf } from "./server.js";

const exporter = new InMemorySpanExporter();
let server: ServerProcess;
let client: Client;
before(async () => {
  server = await ServerProcess.start();
  client = clientOf(server);
  // Before a provider is registered, no push has a trace.
  const { id } = await client.push("untraced", 1);
  assert.deepEqual(await headersOf(id), {});
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
});
after(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => exporter.reset());

async function headersOf(id: bigint): Promise<Record<string, string>> {
  return (await storedJob(client, id)).options?.headers ?? {};
}

function spans(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

async function oneSpan(name: string): Promise<ReadableSpan> {
  await until(`a span ${name}`, () => spans(name).length > 0);
  assert.equal(spans(name).length, 1);
  return spans(name)[0] as ReadableSpan;
}

test("a push is a PRODUCER span, and its handler a CONSUMER span that links to it", async () => {
  const kind = defineJob<number, string>({ queue: "traced" });
  await using worker = workerOf(server).handle(kind, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return trace.getActiveSpan()?.spanContext().traceId ?? "none";
  });
  await worker.start();
  const outer = trace.getTracer("test").startSpan("outer");
  const traceId = await context.with(trace.setSpan(ROOT_CONTEXT, outer), () => client.pushAndWait(kind, 1));
  const push = await oneSpan("push traced");
  const process = await oneSpan("process traced");
  assert.equal(push.kind, SpanKind.PRODUCER);
  assert.equal(push.spanContext().traceId, outer.spanContext().traceId);
  assert.deepEqual(push.attributes, {
    "messaging.system": "jobline",
    "messaging.destination.name": "traced",
    "messaging.operation.name": "push",
    "messaging.operation.type": "send",
    "messaging.batch.message_count": 1,
  });
  assert.equal(process.kind, SpanKind.CONSUMER);
  assert.equal(process.attributes["messaging.operation.type"], "process");
  assert.match(String(process.attributes["messaging.message.id"]), /^\d+$/);
  assert.deepEqual(
    process.links.map((link) => link.context.spanId),
    [push.spanContext().spanId],
  );
  assert.notEqual(process.spanContext().traceId, push.spanContext().traceId);
  assert.equal(traceId, process.spanContext().traceId, "the handler runs within its span, over awaits");
});

test('"child" makes the handler a child, "off" makes no span; own headers stay', async () => {
  const kind = defineJob<number, number>({ queue: "children" });
  const off = defineJob<number, number>({ queue: "off" });
  const quiet = clientOf(server, { tracing: false });
  await using child = workerOf(server, { tracing: "child" }).handle(kind, (n) => n);
  await using none = workerOf(server, { tracing: "off" }).handle(off, (n) => n);
  await Promise.all([child.start(), none.start()]);
  await client.pushAndWait(kind, 1);
  const push = await oneSpan("push children");
  const process = await oneSpan("process children");
  assert.equal(process.parentSpanContext?.spanId, push.spanContext().spanId);
  assert.deepEqual(process.links, []);
  await client.pushAndWait(off, 1);
  await quiet.pushAndWait(kind, 2);
  await quiet.close();
  const own = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
  const { id } = await client.push(kind, 3, { headers: own });
  assert.equal((await headersOf(id)).traceparent, own.traceparent);
  await client.result(kind, id);
  const twice = await Promise.all([1, 2].map(() => client.push(off, 4, { jobKey: "one job, two traces" })));
  assert.deepEqual(new Set(twice.map((one) => one.id)).size, 1);
  await until("its span has ended", () => spans("process children").length === 2);
  assert.equal(spans("process children")[1]?.spanContext().traceId, own.traceparent.slice(3, 35));
  assert.equal(spans("process off").length, 0);
  assert.throws(() => workerOf(server, { tracing: "chil" as never }), /tracing/);
});

test("many jobs are one span; a batch handler links to all of them; a repeated request is known", async () => {
  const kind = defineJob<number>({ queue: "many" });
  const codec = new PayloadCodec();
  await using sealed = clientOf(server, { codec });
  const first = await sealed.pushMany(kind, [1, new NewJob(2, { priority: 1 })], { requestId: "again" });
  const again = await sealed.pushMany(kind, [1, new NewJob(2, { priority: 1 })], { requestId: "again" });
  assert.deepEqual(
    again.map(({ id }) => id),
    first.map(({ id }) => id),
  );
  for (const n of [3, 4]) await client.push(kind, n);
  await using worker = workerOf(server, { codec }).handleBatch(kind, { size: 4, wait: "5s" }, (items) => {
    return items.map(() => undefined);
  });
  await worker.start();
  const process = await oneSpan("process many");
  assert.deepEqual(
    spans("push many").map((span) => span.attributes["messaging.batch.message_count"]),
    [2, 2, 1, 1],
  );
  assert.equal(process.attributes["messaging.batch.message_count"], 4);
  assert.equal(process.links.length, 2, "what is pushed under a requestId carries no trace");
});

test("errors are recorded with their status; what asks for a pause is none", async () => {
  const kind = defineJob<string>({ queue: "failing", maxAttempts: 1 });
  await using worker = workerOf(server).handle(kind, async (what) => {
    if (what === "dead") throw new Dead("no");
    if (what === "snooze") throw new Snooze("1h");
    throw new RangeError("too far");
  });
  await worker.start();
  for (const what of ["error", "dead", "snooze"]) {
    await client.push(kind, what);
    await until(what, () => spans("process failing").length > 0);
    const [span] = spans("process failing");
    const isError = what !== "snooze";
    assert.equal(span?.status.code === SpanStatusCode.ERROR, isError, what);
    assert.equal(
      span?.events.some((event) => event.name === "exception"),
      isError,
      what,
    );
    exporter.reset();
  }
  await assert.rejects(client.push("not a queue!", 1));
  const refused = await oneSpan("push not a queue!");
  assert.equal(refused.status.code, SpanStatusCode.ERROR);
});

test("without the package of OpenTelemetry the client works", () => {
  const program = `
    import Module from "node:module";
    const load = Module._load;
    Module._load = (name, ...rest) => {
      if (name === "@opentelemetry/api") throw new Error("not installed");
      return load(name, ...rest);
    };
    const { Client } = await import("@jobline/client");
    const client = new Client(process.argv[1]);
    console.log((await client.push("alone", 1)).outcome);
    await client.close();
  `;
  const args = ["--input-type=module", "-e", program, server.address];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(stdout, "created\n", stderr);
});
