/**
 * Spans of OpenTelemetry around pushes and handlers, if `@opentelemetry/api` is installed and a tracer provider is
 * registered. It is an optional peer dependency: no type of it is in what this package exports.
 */
import { createRequire } from "node:module";
import type * as Api from "@opentelemetry/api";
import { JoblineError } from "./errors.js";
import { isPromise } from "./promises.js";
import type { Pushed } from "./push/answers.js";
import type { Outgoing, PushNext } from "./push/outgoing.js";
import { isA, textOf } from "./thrown.js";
import { VERSION } from "./version.js";

const NAME = "@jobline/client";
/** Links of one span: a batch has up to as many jobs. */
const LINKS_MAX = 128;

/** How the span of a handler belongs to that of the push. */
export type TraceMode = "link" | "child" | "off";

function installed(): typeof Api | undefined {
  try {
    return createRequire(import.meta.url)("@opentelemetry/api") as typeof Api;
  } catch {
    return undefined;
  }
}

const api = installed();

/** Returns the tracer that the program has registered, if it has. */
function tracerNow(): Api.Tracer | undefined {
  if (!api) return undefined;
  const provider = api.trace.getTracerProvider();
  // Without a registered provider the API's own stands for it, and delegates to nobody.
  if (provider instanceof api.ProxyTracerProvider) return provider.getDelegateTracer(NAME, VERSION);
  return provider.getTracer(NAME, VERSION);
}

/** Returns whether spans would be made now. */
export function isTraced(): boolean {
  return tracerNow() !== undefined;
}

function attributesOf(queue: string, type: "send" | "process", count: number): Api.Attributes {
  return {
    "messaging.system": "jobline",
    "messaging.destination.name": queue,
    "messaging.operation.name": type === "send" ? "push" : "process",
    "messaging.operation.type": type,
    "messaging.batch.message_count": count,
  };
}

/**
 * Pushes jobs within a span, whose context goes into their headers, if they may differ each time. Headers that a
 * job has of its own stay.
 */
export async function tracedPush(
  jobs: readonly Outgoing[],
  send: PushNext,
  mayDiffer: boolean,
): Promise<Pushed[]> {
  const tracer = tracerNow();
  if (!api || !tracer) return send(jobs);
  const { trace, context, propagation, SpanKind } = api;
  const queue = jobs[0]?.queue ?? "";
  const options = { kind: SpanKind.PRODUCER, attributes: attributesOf(queue, "send", jobs.length) };
  const span = tracer.startSpan(`push ${queue}`, options);
  const headers: Record<string, string> = {};
  if (mayDiffer) propagation.inject(trace.setSpan(context.active(), span), headers);
  try {
    return await send(
      jobs.map((job) => ({
        ...job,
        options: { ...job.options, headers: { ...headers, ...job.options.headers } },
      })),
    );
  } catch (error) {
    failed(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function failed(span: Api.Span, error: unknown): void {
  const known = isA(error, Error) ? error : new Error(textOf(error));
  span.recordException(known);
  const reason = known instanceof JoblineError && known.reason;
  span.setAttribute("error.type", reason || known.name);
  span.setStatus({ code: 2, message: known.message }); // SpanStatusCode.ERROR
}

/** What a handler's span is about. */
export interface TracedJob {
  readonly id: bigint;
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns a call of a handler within a span, or the call as it is: no tracer, or no job with a trace. */
export function tracedCall<T>(
  mode: TraceMode,
  jobs: readonly TracedJob[],
  call: () => T,
  isError: (outcome: unknown) => boolean,
): () => T {
  const tracer = mode === "off" ? undefined : tracerNow();
  if (!api || !tracer) return call;
  const { trace, context, propagation, ROOT_CONTEXT, SpanKind, isSpanContextValid } = api;
  const parents = jobs.slice(0, LINKS_MAX).flatMap(({ headers }) => {
    const parent = headers.traceparent ? propagation.extract(ROOT_CONTEXT, headers) : undefined;
    const span = parent && trace.getSpanContext(parent);
    return parent && span && isSpanContextValid(span) ? [{ parent, span }] : [];
  });
  const [first] = parents;
  const [job] = jobs;
  if (!first || !job) return call;
  const isChild = mode === "child" && jobs.length === 1;
  const attributes = attributesOf(job.queue, "process", jobs.length);
  if (jobs.length === 1) attributes["messaging.message.id"] = String(job.id);
  return () => {
    const links = isChild ? [] : parents.map(({ span }) => ({ context: span }));
    const options = { kind: SpanKind.CONSUMER, attributes, links };
    const base = isChild ? first.parent : ROOT_CONTEXT;
    const span = tracer.startSpan(`process ${job.queue}`, options, base);
    return ended(span, isError, () => context.with(trace.setSpan(base, span), call));
  };
}

/** Ends a span when the call has ended, however it did. */
function ended<T>(span: Api.Span, isError: (outcome: unknown) => boolean, call: () => T): T {
  const end = (outcome: unknown) => {
    try {
      if (isError(outcome)) failed(span, outcome);
    } catch {
      span.setStatus({ code: 2 }); // an error that cannot be read
    }
    span.end();
  };
  try {
    const value = call();
    if (!isPromise(value)) {
      end(value);
      return value;
    }
    // Once: a query that is a promise runs each time that it is asked.
    const promise = Promise.resolve(value);
    promise.then(end, end);
    return promise as T;
  } catch (error) {
    end(error);
    throw error;
  }
}
