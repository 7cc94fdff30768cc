import {
  AlreadyExists,
  FailedPrecondition,
  IdempotencyMismatch,
  Internal,
  type JoblineError,
  UniqueKeyHeld,
} from "../errors.js";
import type { EnumName } from "../options.js";
import { AckLevel } from "../v1/job_pb.js";
import { type PushException, PushOutcome, type PushResponse } from "../v1/job_service_pb.js";
import type { Own } from "./batch.js";

/** What became of one pushed job. */
export interface Pushed {
  /** The job's id, or that of the job that it is a duplicate of. */
  readonly id: bigint;
  /** What became of it: "created", "duplicate", "replaced", "extended", "throttled", "debounced", … */
  readonly outcome: EnumName<typeof PushOutcome>;
  /** The ack level that was reached. */
  readonly ackLevel: EnumName<typeof AckLevel>;
  /** Why it was refused alone, such as "UNIQUE_KEY_HELD". */
  readonly reason?: string;
}

/** Outcomes of jobs that were stored, though not simply so. */
const STORED = new Set([PushOutcome.REPLACED, PushOutcome.DEBOUNCED, PushOutcome.PARKED]);

/** Returns the name of an enum's value, in lower case. */
export function nameOf<E extends Record<string, string | number>>(values: E, number: number): EnumName<E> {
  return String(values[number] ?? "unspecified").toLowerCase() as EnumName<E>;
}

/** Returns what became of `count` pushed jobs, in order. Throws Internal for a reply that does not fit. */
export function pushedOf(response: PushResponse, count: number): Pushed[] {
  const ackLevel = nameOf(AckLevel, response.ackLevel);
  const exceptions = new Map<number, PushException>(response.exceptions.map((one) => [one.index, one]));
  const notStored = response.exceptions.filter((one) => !STORED.has(one.outcome)).length;
  if (response.count + notStored !== count) {
    throw new Internal(`${count} jobs were pushed, and the answer speaks of ${response.count}`, {
      reason: "UNEXPECTED_ANSWER",
    });
  }
  let nextId = response.firstId;
  const pushed: Pushed[] = [];
  for (let index = 0; index < count; index += 1) {
    const exception = exceptions.get(index);
    if (exception && !STORED.has(exception.outcome)) {
      const { id, outcome, reason } = exception;
      pushed.push({ id, outcome: nameOf(PushOutcome, outcome), ackLevel, ...(reason && { reason }) });
    } else {
      const outcome = exception ? nameOf(PushOutcome, exception.outcome) : "created";
      pushed.push({ id: nextId, outcome, ackLevel });
      nextId += 1n;
    }
  }
  return pushed;
}

/** Returns the error of a push that was refused alone, for this reason. */
export function refusalOf(queue: string, own: Own | undefined, reason: string): JoblineError {
  switch (reason) {
    case "IDEMPOTENCY_MISMATCH":
      return new IdempotencyMismatch(
        `the jobKey ${own?.jobKey} is known in queue ${queue} with another payload`,
        { reason, code: "ALREADY_EXISTS" },
      );
    case "UNIQUE_KEY_HELD":
      return new UniqueKeyHeld(`another job of queue ${queue} holds the uniqueKey ${own?.uniqueKey}`, {
        reason,
        code: "ALREADY_EXISTS",
      });
    case "JOB_AWAITED":
      return new FailedPrecondition(
        `others depend on the job of queue ${queue} that has the uniqueKey ${own?.uniqueKey}`,
        { reason, code: "FAILED_PRECONDITION" },
      );
    default:
      return new AlreadyExists(`the server refused the job for its keys: ${reason}`, {
        reason,
        code: "ALREADY_EXISTS",
      });
  }
}
