import { durationMessage } from "../duration.js";
import { Internal, InvalidArgument } from "../errors.js";
import { encodePayload, type JobType, NewJob } from "../job_type.js";
import { type PushOptions, refuseUnknown } from "../options.js";
import type { PushRequest } from "../v1/job_service_pb.js";
import type { Pushed } from "./answers.js";
import {
  batchKey,
  defined,
  keyOf,
  type ManyOptions,
  mergedOptions,
  ownPush,
  requestOf,
  rowOf,
  type SinglePush,
} from "./messages.js";

/** A job on its way out: its payload in bytes, and its options complete, those of its declaration included. */
export interface Outgoing {
  /** The queue. */
  readonly queue: string;
  /** The payload as it will be stored; a codec seals it behind all middleware. */
  readonly payload: Uint8Array;
  /** Everything else, such as `name`, `headers` and `jobKey`. */
  readonly options: Omit<PushOptions, "ackLevel">;
}

/** Pushes jobs, all of one queue, and returns what became of each, in order. */
export type PushNext = (jobs: readonly Outgoing[]) => Promise<Pushed[]>;

/**
 * Wraps each call that pushes: `jobs` is one for `push` and `pushAndWait`, and all of them for `pushMany`. `next`
 * pushes them; give it other jobs (as many, all of one queue) to change them, throw to refuse them. Without a
 * call of `next`, nothing is sent.
 */
export type PushMiddleware = (jobs: readonly Outgoing[], next: PushNext) => Promise<Pushed[]>;

/** Pushes jobs through middleware, the first outermost. */
export async function through(
  middleware: readonly PushMiddleware[],
  jobs: readonly Outgoing[],
  send: PushNext,
): Promise<Pushed[]> {
  const count = jobs.length;
  const last: PushNext = async (changed) => {
    if (changed.length !== count)
      throw new InvalidArgument(`middleware made ${changed.length} jobs of ${count}`);
    if (changed.some(({ queue }) => queue !== changed[0]?.queue)) {
      throw new InvalidArgument("middleware sent the jobs of one call to several queues");
    }
    return send(changed);
  };
  const first = middleware.reduceRight<PushNext>((next, layer) => async (these) => layer(these, next), last);
  const pushed = await first(jobs);
  if (pushed?.length !== count) {
    throw new Internal(`middleware returned ${pushed?.length ?? "no"} outcomes of ${count} jobs`);
  }
  return pushed;
}

/** Returns a job with these headers, which go before those that it has. */
export function withHeaders(job: Outgoing, headers: Readonly<Record<string, string>>): Outgoing {
  return { ...job, options: { ...job.options, headers: { ...job.options.headers, ...headers } } };
}

/** Returns a job as it will be sent. Throws InvalidArgument, CodecError, or what its schema throws. */
export function outgoingOf<P>(
  job: JobType<P, unknown>,
  payload: P,
  options: Omit<PushOptions, "ackLevel">,
): Outgoing {
  refuseUnknown(options);
  const { data, isJson } = encodePayload(job, payload);
  return { queue: job.queue, payload: data, options: mergedOptions(job, options, isJson) };
}

/** Returns the jobs of one `pushMany`: payloads, or `NewJob`s with something of their own. */
export function outgoingOfMany<P>(
  job: JobType<P, unknown>,
  jobs: readonly (P | NewJob<P>)[],
  options: ManyOptions,
): Outgoing[] {
  refuseUnknown(options, CALL_OPTIONS);
  const { ackLevel: _, atomic: __, spread: ___, requestId: ____, ...shared } = options;
  return jobs.map((one) => {
    const row = one instanceof NewJob ? one : new NewJob(one);
    refuseUnknown(row.options);
    const { delay, runAt } = row.options;
    const start = delay !== undefined || runAt !== undefined ? { delay: undefined, runAt: undefined } : {};
    const headers = shared.headers && row.options.headers && { ...shared.headers, ...row.options.headers };
    return outgoingOf(job, row.payload, {
      ...defined({ ...shared, ...start }),
      ...defined(row.options),
      ...(headers && { headers }),
    });
  });
}

const CALL_OPTIONS = ["atomic", "spread", "requestId"];

/** Returns one job as a push that may share a call with others. */
export function pushOf({ queue, payload, options }: Outgoing, ackLevel: PushOptions["ackLevel"]): SinglePush {
  const { jobKey, uniqueKey, delay, runAt, ...rest } = options;
  return ownPush(queue, payload, rest, { jobKey, uniqueKey, delay, runAt, ackLevel });
}

/** Returns the request of many jobs: what they have alike is in it once. */
export function requestOfOutgoing(jobs: readonly Outgoing[], call: ManyOptions): PushRequest {
  const { ackLevel, atomic, spread, requestId } = call;
  const alike = sharedOptions(jobs);
  const { delay, runAt, ...shared } = alike ?? {};
  const request = requestOf(batchKey(jobs[0]?.queue ?? "", shared, { delay, runAt }, ackLevel));
  if (atomic === false) request.atomic = false;
  if (spread !== undefined) request.spread = durationMessage(spread, "spread");
  if (requestId !== undefined) request.requestId = keyOf("requestId", requestId);
  if (alike && jobs.every(({ options }) => !options.jobKey && !options.uniqueKey)) {
    request.payloads = jobs.map((job) => job.payload);
    return request;
  }
  request.jobs = jobs.map(({ payload, options }) => {
    const { jobKey, uniqueKey } = options;
    return rowOf(payload, alike ? defined({ jobKey, uniqueKey }) : options, false);
  });
  return request;
}

/** Returns the options of jobs that differ in nothing but their keys; undefined if they differ in more. */
function sharedOptions(jobs: readonly Outgoing[]): Omit<PushOptions, "jobKey" | "uniqueKey"> | undefined {
  let shared: Omit<PushOptions, "jobKey" | "uniqueKey"> | undefined;
  let text: string | undefined;
  for (const { options } of jobs) {
    const { jobKey: _, uniqueKey: __, ...rest } = options;
    const own = JSON.stringify(rest, (_key, value) => (typeof value === "bigint" ? `${value}n` : value));
    text ??= own;
    shared ??= rest;
    if (own !== text) return undefined;
  }
  return shared;
}
