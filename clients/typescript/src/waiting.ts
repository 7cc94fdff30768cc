import { decodeJson } from "./codec.js";
import type { Connection } from "./connection.js";
import { boundedMilliseconds, type Duration, dateOf } from "./duration.js";
import {
  type ErrorFacts,
  JobCancelled,
  JobDead,
  JobExpired,
  JobNotDone,
  JobNotFound,
  PermissionDenied,
  TooLarge,
} from "./errors.js";
import { refuseNoId, refuseNoSignal } from "./given.js";
import { refuseOthers } from "./known_options.js";
import { oneLine } from "./one_line.js";
import type { EnumName } from "./options.js";
import { nameOf } from "./push/answers.js";
import { opened, type PayloadCodec } from "./sealing/payload_codec.js";
import { EndReason, type JobError as JobErrorMessage, JobState } from "./v1/job_pb.js";
import type { WaitResponse } from "./v1/job_service_pb.js";
import { type SharedWaits, WAIT_IDS_MAX } from "./waits/shared_waits.js";
import { Wait } from "./waits/wait.js";
import { WAIT_MAX } from "./waits/wait_call.js";

/** How long a wait is, unless it says so. */
export const WAIT_DEFAULT = "60s";

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
  /** Whether there is a result, which the caller may not see without the verb `read_payload`. */
  readonly resultHidden: boolean;
  /** Why it ended other than well. */
  readonly reason: EnumName<typeof EndReason> | "unspecified";
  /** The last error. */
  readonly error: JobErrorMessage | undefined;
  /** When it ended. */
  readonly endedAt: Date | undefined;
}

/**
 * Returns the JSON of a result; throws JobDead, JobCancelled, JobExpired or JobNotFound without one, and
 * PermissionDenied for one that the caller may not see.
 */
export function resultOf(end: JobEnd, decode: (data: Uint8Array) => unknown = decodeJson): unknown {
  if (end.resultHidden) {
    throw new PermissionDenied(`the result of job ${end.id} needs the verb read_payload for its queue`, {
      reason: "RESULT_HIDDEN",
      code: "PERMISSION_DENIED",
      metadata: { id: String(end.id) },
    });
  }
  if (end.state === "completed") return decode(end.result);
  const facts: ErrorFacts = {
    reason: end.reason === "unspecified" ? "" : end.reason.toUpperCase(),
    metadata: { id: String(end.id), ...(end.error && { type: end.error.type }) },
  };
  if (end.state === "unspecified")
    throw new JobNotFound(`there is no job ${end.id}, or none any more`, facts);
  const Kind =
    { dead: JobDead, cancelled: JobCancelled, expired: JobExpired }[end.state as string] ?? JobNotDone;
  const why = oneLine([end.error?.type, end.error?.message].filter(Boolean).join(": "));
  throw new Kind(`job ${end.id} is ${end.state} (${end.reason})${why ? `: ${why}` : ""}`, facts);
}

/** Yields how jobs end, as each does. Throws WaitTimeout, with the id of one that has not ended. */
export async function* waitFor(
  connection: Connection,
  waits: SharedWaits,
  ids: Iterable<bigint>,
  options: WaitOptions,
  codec: PayloadCodec | undefined,
): AsyncGenerator<JobEnd> {
  refuseOthers(options, { timeout: true, signal: true });
  refuseNoSignal(options.signal);
  const timeout = boundedMilliseconds(options.timeout ?? WAIT_DEFAULT, "timeout", WAIT_MAX);
  const wanted = new Set(ids);
  for (const id of wanted) refuseNoId("ids", id);
  if (wanted.size > WAIT_IDS_MAX)
    throw new TooLarge(`ids: must be at most ${WAIT_IDS_MAX}, not ${wanted.size}`);
  const wait = new Wait(connection, waits, wanted, timeout, options.signal);
  try {
    for (let response = await wait.next(); response; response = await wait.next()) {
      yield endOf(response, codec);
    }
  } finally {
    wait.forget();
  }
}

function endOf(response: WaitResponse, codec: PayloadCodec | undefined): JobEnd {
  return {
    id: response.id,
    state: nameOf(JobState, response.state),
    // When it is asked for: how a job ended can be told without the key of its result.
    get result() {
      return opened(codec, response.result).data;
    },
    resultHidden: response.resultHidden,
    reason: nameOf(EndReason, response.reason),
    error: response.error,
    endedAt: dateOf(response.endedAt),
  };
}
