import { pauseAfter, RETRY } from "./backoff.js";
import { decodeJson } from "./codec.js";
import type { Connection } from "./connection.js";
import { type Duration, dateOf, durationMessage, milliseconds } from "./duration.js";
import {
  type ErrorFacts,
  Internal,
  JobCancelled,
  JobDead,
  JobExpired,
  JobNotDone,
  JobNotFound,
  WaitTimeout,
} from "./errors.js";
import { refuseNoId, refuseNoSignal } from "./given.js";
import { refuseOthers } from "./known_options.js";
import type { EnumName } from "./options.js";
import { nameOf } from "./push/answers.js";
import { opened, type PayloadCodec } from "./sealing/payload_codec.js";
import { errorOf } from "./status.js";
import { EndReason, type JobError as JobErrorMessage, JobState } from "./v1/job_pb.js";
import { JobService, type WaitResponse } from "./v1/job_service_pb.js";

/** How long a wait is, unless it says so. */
export const WAIT_DEFAULT = "60s";

/** The states in which jobs end. */
const ENDS = new Set([JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED]);

/** How to wait for jobs. */
export interface WaitOptions {
  /** How long to wait in all, up to 1 h; default 60 s. */
  timeout?: Duration;
  /** Ends the wait; the jobs go on. */
  signal?: AbortSignal;
}

/** How one job ended. */
export interface JobEnd {
  /** The job. */
  readonly id: bigint;
  /** "completed", "dead", "cancelled" or "expired"; "unspecified": there is no such job. */
  readonly state: EnumName<typeof JobState> | "unspecified";
  /** What it returned. Throws KeyErased if the key that it was sealed with was erased. */
  readonly result: Uint8Array;
  /** Why it ended other than well. */
  readonly reason: EnumName<typeof EndReason> | "unspecified";
  /** The last error. */
  readonly error: JobErrorMessage | undefined;
  /** When it ended. */
  readonly endedAt: Date | undefined;
}

/** Returns the JSON of a result; throws JobDead, JobCancelled, JobExpired or JobNotFound without one. */
export function resultOf(end: JobEnd, decode: (data: Uint8Array) => unknown = decodeJson): unknown {
  if (end.state === "completed") return decode(end.result);
  const facts: ErrorFacts = {
    reason: end.reason === "unspecified" ? "" : end.reason.toUpperCase(),
    metadata: { id: String(end.id), ...(end.error && { type: end.error.type }) },
  };
  if (end.state === "unspecified")
    throw new JobNotFound(`there is no job ${end.id}, or none any more`, facts);
  const Kind =
    { dead: JobDead, cancelled: JobCancelled, expired: JobExpired }[end.state as string] ?? JobNotDone;
  const why = [end.error?.type, end.error?.message].filter(Boolean).join(": ");
  throw new Kind(`job ${end.id} is ${end.state} (${end.reason})${why ? `: ${why}` : ""}`, facts);
}

/** Yields how jobs end, as each does. Throws WaitTimeout, with the id of one that has not ended. */
export async function* waitFor(
  connection: Connection,
  ids: Iterable<bigint>,
  options: WaitOptions,
  codec: PayloadCodec | undefined,
): AsyncGenerator<JobEnd> {
  refuseOthers(options, { timeout: true, signal: true });
  refuseNoSignal(options.signal);
  const waitMs = milliseconds(options.timeout ?? WAIT_DEFAULT, "timeout");
  const until = performance.now() + waitMs;
  const remaining = new Set(ids);
  for (const id of remaining) refuseNoId("ids", id);
  for (let tries = 1; remaining.size > 0; tries += 1) {
    const left = Math.max(0, until - performance.now());
    try {
      for await (const response of asked(connection, remaining, left, options.signal)) {
        refuseNoEnd(response, remaining);
        tries = 1;
        remaining.delete(response.id);
        yield endOf(response, codec);
      }
    } catch (caught) {
      options.signal?.throwIfAborted();
      const error = errorOf(caught);
      const pause = Math.max(error.retryAfter ?? 0, pauseAfter(RETRY, tries, Math.random));
      if (error.definite || !error.retryable || performance.now() + pause > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
      continue;
    }
    if (remaining.size > 0 && !(await pauseWithin(until, tries))) throw timedOut(remaining, waitMs);
  }
}

/** Pauses after a call that the server has ended before its time. Returns false if that is over. */
async function pauseWithin(until: number, tries: number): Promise<boolean> {
  const left = until - performance.now();
  if (left <= 0) return false;
  const pause = Math.min(left, pauseAfter(RETRY, tries, Math.random));
  await new Promise((resolve) => setTimeout(resolve, pause));
  return true;
}

/** Throws Internal for an answer that says of none of these jobs how it ended. */
function refuseNoEnd({ id, state, notFound }: WaitResponse, ids: ReadonlySet<bigint>): void {
  const isEnd = notFound || ENDS.has(state);
  if (ids.has(id) && isEnd) return;
  const what = isEnd ? `an end of job ${id}, which is not waited for` : `job ${id}, but not with its end`;
  throw new Internal(`the server answered a wait with ${what}`, { reason: "UNEXPECTED_ANSWER" });
}

function asked(connection: Connection, ids: Set<bigint>, left: number, signal: AbortSignal | undefined) {
  const request = { ids: [...ids], timeout: durationMessage(left, "timeout") };
  return connection
    .stub(JobService)
    .wait(request, { timeout: left + connection.timeout, ...(signal && { signal }) });
}

function timedOut(remaining: Set<bigint>, waitMs: number): WaitTimeout {
  const [id] = remaining;
  return new WaitTimeout(`job ${id} has not ended within ${waitMs / 1_000} s`, {
    reason: "WAIT_TIMEOUT",
    metadata: { id: String(id) },
  });
}

function endOf(response: WaitResponse, codec: PayloadCodec | undefined): JobEnd {
  return {
    id: response.id,
    state: nameOf(JobState, response.state),
    // When it is asked for: how a job ended can be told without the key of its result.
    get result() {
      return opened(codec, response.result).data;
    },
    reason: nameOf(EndReason, response.reason),
    error: response.error,
    endedAt: dateOf(response.endedAt),
  };
}
