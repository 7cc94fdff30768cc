import { decodeJson, encode } from "./codec.js";
import { CodecError, InvalidArgument } from "./errors.js";
import { refuseNoObject, refuseWithout, wrongly } from "./given.js";
import type { JsonSchema } from "./json_schema.js";
import { type JobOptions, type PushOptions, refuseUnknown } from "./options.js";

/** What checks a value and gives it its type: zod's schemas fit, and anything else with `parse`. */
export interface Schema<T> {
  /** Returns the value as its type, or throws. */
  parse(value: unknown): T;
}

/** How payloads and results of a job are bytes: JSON, or the bytes themselves. */
export type Codec = "json" | "bytes";

/** What a job is declared with: queue, name, options, and how its values are checked. */
export interface JobDeclaration<P, R> extends JobOptions {
  /** The queue: 1 … 256 of `A-Za-z0-9._:-`. */
  queue: string;
  /** Checks payloads: when they are pushed, and again before they are worked on. */
  schema?: Schema<P>;
  /** Checks results, where they are waited for. */
  resultSchema?: Schema<R>;
  /**
   * What workers announce of payloads and results, for operators, `jobline generate` and queues that check payloads.
   * Default: what `schema` and `resultSchema` tell, such as zod's. Nothing is checked by it in this client.
   */
  jsonSchema?: { readonly payload?: JsonSchema; readonly result?: JsonSchema };
  /** "bytes": payloads and results are `Uint8Array`; default "json". */
  codec?: Codec;
}

declare const TYPES: unique symbol;

/** A declared job: a value that producers push and workers handle, with the types of both ends. */
export interface JobType<P, R> {
  /** The queue. */
  readonly queue: string;
  /** The name; "" without one. */
  readonly name: string;
  /** The options of each push, unless it says otherwise. */
  readonly options: Readonly<JobOptions>;
  /** How its values are bytes. */
  readonly codec: Codec;
  /** Checks payloads. */
  readonly schema: Schema<P> | undefined;
  /** Checks results. */
  readonly resultSchema: Schema<R> | undefined;
  /** JSON Schemas to announce in place of those that these tell. */
  readonly jsonSchema: { readonly payload?: JsonSchema; readonly result?: JsonSchema };
  /** Only for the compiler: the types of payload and result. */
  readonly [TYPES]?: [payload: P, result: R];
}

const OF_DECLARATIONS = ["queue", "schema", "resultSchema", "jsonSchema", "codec"] as const;

/**
 * Declares a job once, for producers and workers. Throws InvalidArgument for an option that does not exist.
 *
 * ```ts
 * const welcome = defineJob<{ to: string }, { sent: string }>({ queue: "emails", name: "welcome" });
 * ```
 */
export function defineJob<P = unknown, R = unknown>(declaration: JobDeclaration<P, R>): JobType<P, R> {
  refuseNoObject("declaration", declaration);
  const { queue, schema, resultSchema, jsonSchema = {}, codec = "json", ...options } = declaration;
  if (typeof queue !== "string" || !queue) {
    throw new InvalidArgument("queue: a job has the name of its queue", { fields: { queue: "is missing" } });
  }
  if (codec !== "json" && codec !== "bytes") {
    throw new InvalidArgument(`codec: is "json" or "bytes", not ${String(codec)}`, {
      fields: { codec: "is unknown" },
    });
  }
  refuseUnknown(declaration, OF_DECLARATIONS);
  for (const [field, given] of Object.entries({ schema, resultSchema })) {
    if (given !== undefined) refuseWithout(field, "what has a method `parse`", given, "parse");
  }
  return Object.freeze({
    queue,
    name: options.name ?? "",
    options: Object.freeze(options),
    codec,
    schema,
    resultSchema,
    jsonSchema,
  });
}

/** Returns a declared job, or one of a queue without a declaration. Throws InvalidArgument for anything else. */
export function jobTypeOf<P, R>(job: JobType<P, R> | string): JobType<P, R> {
  if (typeof job !== "string") {
    // An object that looks like one has no name, and would be found by no worker.
    if (typeof job?.queue === "string" && typeof job.name === "string" && job.options) return job;
    throw wrongly("job", "the name of a queue, or what defineJob() returns", job);
  }
  let known = UNDECLARED.get(job);
  if (known === undefined) {
    if (UNDECLARED.size >= UNDECLARED_MAX) UNDECLARED.clear();
    known = defineJob<unknown, unknown>({ queue: job });
    UNDECLARED.set(job, known);
  }
  return known as JobType<P, R>;
}

/** Queues that were named by text, so that each push of one does not declare it again. */
const UNDECLARED = new Map<string, JobType<unknown, unknown>>();
const UNDECLARED_MAX = 1_000;

/** Returns a payload as bytes. Throws what the schema throws, or CodecError. */
export function encodePayload<P>(
  job: JobType<P, unknown>,
  payload: P,
): { data: Uint8Array; isJson: boolean } {
  job.schema?.parse(payload);
  if (job.codec === "bytes" && !(payload instanceof Uint8Array)) {
    throw new CodecError(`a payload of ${job.queue}/${job.name} is a Uint8Array`);
  }
  return encode(payload);
}

/** Returns a payload from bytes. Throws what the schema throws, or CodecError. */
export function decodePayload<P>(job: JobType<P, unknown>, data: Uint8Array): P {
  const value = job.codec === "bytes" ? data : decodeJson(data);
  return job.schema ? job.schema.parse(value) : (value as P);
}

/** Returns a result from bytes; what is no JSON stays bytes where nothing is declared. */
export function decodeResult<R>(job: JobType<unknown, R>, data: Uint8Array): R {
  const value = job.codec === "bytes" ? data : decodeJson(data);
  return job.resultSchema ? job.resultSchema.parse(value) : (value as R);
}

/** One job of `pushMany` that has something of its own beside its payload. */
export class NewJob<P> {
  /** Makes a job of a payload and its own options, which go before those that are shared. */
  constructor(
    /** The payload. */
    readonly payload: P,
    /** What this job has of its own. */
    readonly options: Omit<PushOptions, "ackLevel"> = {},
  ) {}
}
