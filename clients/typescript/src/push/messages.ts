import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { JSON_TYPE } from "../codec.js";
import { durationMessage, timestampMessage } from "../duration.js";
import { InvalidArgument, JoblineError } from "../errors.js";
import { encodePayload, type JobType, NewJob } from "../job_type.js";
import { enumNumber, type JobOptions, optionsMessage, type PushOptions, refuseUnknown } from "../options.js";
import { AckLevel, type NewJob as NewJobMessage, NewJobSchema } from "../v1/job_pb.js";
import { type PushRequest, PushRequestSchema } from "../v1/job_service_pb.js";
import { type Batch, type Call, NOTHING, type Own } from "./batch.js";
import { HEADER_KEYS_MAX, havePayloadsAlone } from "./batcher.js";

/** What pushes share that may be sent in one request. Those with the same `key` do. */
export interface BatchKey {
  readonly key: string;
  readonly queue: string;
  readonly options: JobOptions;
  readonly start: Pick<PushOptions, "delay" | "runAt">;
  readonly ackLevel: PushOptions["ackLevel"];
}

/** A single push: what it shares with others, and what it has of its own. */
export interface SinglePush {
  readonly key: BatchKey;
  readonly payload: Uint8Array;
  readonly own: Own;
}

/** The batch keys of declared jobs that are pushed without further options. */
const PLAIN_KEYS = new WeakMap<object, Map<boolean, BatchKey>>();
const NO_OPTIONS: PushOptions = Object.freeze({});

/** Returns one push of a declared job. Throws InvalidArgument, CodecError, or what its schema throws. */
export function singlePush<P>(
  job: JobType<P, unknown>,
  payload: P,
  options: PushOptions = NO_OPTIONS,
): SinglePush {
  const { data, isJson } = encodePayload(job, payload);
  if (options === NO_OPTIONS && !job.options.headers && !job.options.group) {
    return { key: plainKey(job, isJson), payload: data, own: NOTHING };
  }
  refuseUnknown(options);
  const { jobKey, uniqueKey, delay, runAt, ackLevel, ...rest } = options;
  const merged = mergedOptions(job, rest, isJson);
  return ownPush(job.queue, data, merged, { jobKey, uniqueKey, delay, runAt, ackLevel });
}

/** What belongs to a push and not to its options. */
type OfPush = { [K in "jobKey" | "uniqueKey" | "delay" | "runAt" | "ackLevel"]: PushOptions[K] | undefined };

/** Returns one push with complete options. Throws InvalidArgument for what cannot be sent. */
export function ownPush(queue: string, payload: Uint8Array, options: JobOptions, push: OfPush): SinglePush {
  const { jobKey, uniqueKey, delay, runAt, ackLevel } = push;
  const { headers, group, ...shared } = options;
  const own = {
    jobKey: keyOf("jobKey", jobKey),
    uniqueKey: keyOf("uniqueKey", uniqueKey),
    group: group ?? "",
  };
  refuseAlone(shared, own);
  const fits = !headers || fitsColumns(headers);
  const key = batchKey(queue, fits ? shared : { ...shared, headers }, { delay, runAt }, ackLevel);
  const isPlain = !own.jobKey && !own.uniqueKey && !own.group && !(fits && headers);
  return { key, payload, own: isPlain ? NOTHING : { ...own, headers: fits ? headers : undefined } };
}

function plainKey(job: JobType<unknown, unknown>, isJson: boolean): BatchKey {
  let keys = PLAIN_KEYS.get(job);
  if (!keys) {
    keys = new Map();
    PLAIN_KEYS.set(job, keys);
  }
  let key = keys.get(isJson);
  if (!key) {
    key = batchKey(job.queue, mergedOptions(job, {}, isJson), {}, undefined);
    keys.set(isJson, key);
  }
  return key;
}

/** Returns the key of pushes that may share a call. Throws InvalidArgument for what no message holds. */
export function batchKey(
  queue: string,
  options: JobOptions,
  start: { delay?: PushOptions["delay"] | undefined; runAt?: Date | undefined },
  ackLevel: PushOptions["ackLevel"],
): BatchKey {
  const known = defined(options);
  const key = JSON.stringify([queue, known, start, ackLevel], (_, value) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
  const made: BatchKey = { key, queue, options: known, start: defined(start), ackLevel };
  requestOf(made); // throws for what no message holds, before anything is queued
  return made;
}

/** Returns the options of a declared job with those of a push, which go before them. */
export function mergedOptions<O extends JobOptions>(
  job: JobType<unknown, unknown>,
  own: O,
  isJson: boolean,
): JobOptions & O {
  const headers = own.headers && job.options.headers ? { ...job.options.headers, ...own.headers } : undefined;
  return {
    ...(isJson && { contentType: JSON_TYPE }),
    ...job.options,
    ...(defined(own) as O),
    ...(headers && { headers }),
  };
}

/** Returns values without those that are undefined. */
export function defined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Returns a key, "" for none. Throws InvalidArgument for an empty one, which would make nothing safe. */
export function keyOf(field: string, key: string | undefined): string {
  if (key === undefined) return "";
  if (typeof key !== "string" || !key) {
    throw new InvalidArgument(`${field}: a key has 1 … 256 bytes`, { fields: { [field]: "is empty" } });
  }
  return key;
}

/** Returns whether columns can hold these headers: in a column, "" is no value. */
function fitsColumns(headers: Readonly<Record<string, string>>): boolean {
  const entries = Object.entries(headers);
  return entries.length <= HEADER_KEYS_MAX && entries.every(([key, value]) => key && value);
}

/**
 * Throws InvalidArgument, as the server would, for options that mean nothing without a group or a unique key.
 * Among pushes that share a call it would take them, if another one has what they need.
 */
function refuseAlone(options: JobOptions, own: Omit<Own, "headers">): void {
  const needs: [keyof JobOptions, string, string][] = [
    ["uniqueMode", own.uniqueKey, "uniqueKey"],
    ["uniqueTtl", own.uniqueKey, "uniqueKey"],
    ["uniqueMaxWait", own.uniqueKey, "uniqueKey"],
    ["sticky", own.group, "group"],
    ["onDeadHead", own.group, "group"],
  ];
  for (const [name, has, needed] of needs) {
    if (options[name] !== undefined && !has) {
      throw new InvalidArgument(`options.${name}: needs a ${needed}`, {
        fields: { [`options.${name}`]: `needs a ${needed}` },
      });
    }
  }
}

/** Runs `build`, and turns errors of building a message into InvalidArgument. */
export function fitting<T>(build: () => T): T {
  try {
    return build();
  } catch (error) {
    if (error instanceof JoblineError) throw error;
    throw new InvalidArgument(`this cannot be sent: ${(error as Error).message}`, { cause: error });
  }
}

type StartInit = Pick<MessageInitShape<typeof NewJobSchema>, "start">;

function startOf(start: Pick<PushOptions, "delay" | "runAt">): StartInit {
  if (start.delay !== undefined && start.runAt !== undefined) {
    throw new InvalidArgument("give delay or runAt, not both", { fields: { delay: "is not alone" } });
  }
  if (start.delay !== undefined) {
    return { start: { case: "delay", value: durationMessage(start.delay, "delay") } };
  }
  if (start.runAt === undefined) return {};
  return { start: { case: "runAt", value: timestampMessage(start.runAt, "runAt") } };
}

/** Returns a request without jobs. */
export function requestOf(key: BatchKey): PushRequest {
  return create(PushRequestSchema, {
    queue: key.queue,
    options: optionsMessage(key.options),
    ...(key.ackLevel && { ackLevel: enumNumber(AckLevel, key.ackLevel, "ackLevel") }),
    ...startOf(key.start),
  });
}

/** Sets the number of a call, so that the server recognises its repeat. */
export function identify(request: PushRequest, call: Call | undefined): void {
  if (!call) return;
  request.producer = {
    $typeName: "jobline.v1.PushProducer",
    id: Buffer.from(call.producer, "hex"),
    sequence: BigInt(call.sequence),
    answeredBelow: BigInt(call.answeredBelow),
  };
}

/** Returns the request of a batch. Pushes with keys are refused one by one for their keys. */
export function requestOfBatch(batch: Batch<BatchKey, unknown>): PushRequest {
  const request = requestOf(batch.key);
  identify(request, batch.call);
  request.payloads = batch.pushes.map((push) => push.payload);
  const owns = batch.pushes.map((push) => push.own);
  if (havePayloadsAlone(owns)) return request;
  putHeaders(
    request,
    owns.map((own) => own.headers),
  );
  const columns = { jobKeys: "jobKey", uniqueKeys: "uniqueKey", groups: "group" } as const;
  for (const column of ["jobKeys", "uniqueKeys", "groups"] as const) {
    const values = owns.map((own) => own[columns[column]]);
    if (values.some(Boolean)) request[column] = values;
  }
  if (request.jobKeys.length > 0 || request.uniqueKeys.length > 0) request.atomic = false;
  return request;
}

/** Puts headers into a request: those that all have alike into the shared options, others into columns. */
function putHeaders(request: PushRequest, headers: readonly (Own["headers"] | undefined)[]): void {
  const keys = new Set(headers.flatMap((own) => Object.keys(own ?? {})));
  for (const key of keys) {
    const values = headers.map((own) => own?.[key] ?? "");
    const first = values[0] ?? "";
    if (values.every((value) => value === first)) {
      request.options ??= optionsMessage({});
      request.options.headers[key] = first;
    } else {
      request.headerColumns.push({ $typeName: "jobline.v1.HeaderColumn", key, values });
    }
  }
}

/** How many jobs are pushed in one call of `pushMany`. */
export interface ManyOptions extends Omit<PushOptions, "jobKey" | "uniqueKey"> {
  /** All or none; default true. With false, a job whose key does not match is refused alone. */
  atomic?: boolean;
  /** Spreads at most 1,000 jobs evenly over this time. */
  spread?: PushOptions["delay"];
  /** Makes a repeat of this very call safe, from any process, 1 … 64 bytes. Not together with job keys. */
  requestId?: string;
}

/** Returns the request of many jobs: plain payloads if all are, else one item per job. */
export function requestOfMany<P>(
  job: JobType<P, unknown>,
  jobs: readonly (P | NewJob<P>)[],
  options: ManyOptions,
): PushRequest {
  refuseUnknown(options, ["atomic", "spread", "requestId"]);
  const { delay, runAt, ackLevel, atomic, spread, requestId, ...shared } = options;
  const rows = jobs.map((one) => (one instanceof NewJob ? one : new NewJob(one)));
  const encoded = rows.map((row) => encodePayload(job, row.payload));
  const isJson = encoded.every((one) => one.isJson);
  const key = batchKey(job.queue, mergedOptions(job, shared, isJson), { delay, runAt }, ackLevel);
  const request = requestOf(key);
  if (atomic === false) request.atomic = false;
  if (spread !== undefined) request.spread = durationMessage(spread, "spread");
  if (requestId !== undefined) request.requestId = keyOf("requestId", requestId);
  const isPlain = rows.every((row) => Object.keys(row.options).length === 0);
  if (isPlain && (isJson || !encoded.some((one) => one.isJson))) {
    request.payloads = encoded.map((one) => one.data);
    return request;
  }
  request.jobs = rows.map((row, index) => {
    const { data, isJson: isOwnJson } = encoded[index] as { data: Uint8Array; isJson: boolean };
    return rowOf(data, row.options, isOwnJson && !isJson);
  });
  return request;
}

/** Returns the message of one job. */
export function rowOf(data: Uint8Array, options: PushOptions, setJson: boolean): NewJobMessage {
  refuseUnknown(options);
  const { jobKey, uniqueKey, delay, runAt, ackLevel: _, ...own } = options;
  const row = create(NewJobSchema, {
    payload: { case: "data", value: data },
    options: optionsMessage({ ...(setJson && { contentType: JSON_TYPE }), ...own }),
    jobKey: keyOf("jobKey", jobKey),
    ...startOf(defined({ delay, runAt })),
  });
  if (uniqueKey !== undefined && row.options) row.options.uniqueKey = keyOf("uniqueKey", uniqueKey);
  return row;
}
