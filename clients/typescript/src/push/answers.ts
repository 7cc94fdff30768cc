import { IdempotencyMismatch, Internal, type JoblineError, UniqueKeyHeld } from "../errors.js";
import type { EnumName } from "../options.js";
import { AckLevel } from "../v1/job_pb.js";
import { type PushException, PushOutcome, type PushResponse } from "../v1/job_service_pb.js";
import type { Batch } from "./batch.js";
import type { BatchKey } from "./messages.js";

/** What became of one pushed job. */
export interface Pushed {
  /** The job's id, or that of the job that it is a duplicate of. */
  readonly id: bigint;
  /** What became of it: "created", "duplicate", "replaced", "extended", "throttled", "debounced", … */
  readonly outcome: EnumName<typeof PushOutcome>;
  /** The ack level that was reached. */
  readonly ackLevel: EnumName<typeof AckLevel>;
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
      pushed.push({ id: exception.id, outcome: nameOf(PushOutcome, exception.outcome), ackLevel });
    } else {
      const outcome = exception ? nameOf(PushOutcome, exception.outcome) : "created";
      pushed.push({ id: nextId, outcome, ackLevel });
      nextId += 1n;
    }
  }
  return pushed;
}

/**
 * Returns the error of a push that was refused alone. One with both kinds of keys was refused for its job key
 * unless it asked for "reject".
 */
export function refusalOf(batch: Batch<BatchKey, unknown>, index: number): JoblineError {
  const own = batch.pushes[index]?.own;
  const { queue, options } = batch.key;
  if (own?.uniqueKey && (!own.jobKey || options.uniqueMode === "reject")) {
    return new UniqueKeyHeld(`another job of queue ${queue} holds the uniqueKey ${own.uniqueKey}`, {
      reason: "UNIQUE_KEY_HELD",
      code: "ALREADY_EXISTS",
    });
  }
  return new IdempotencyMismatch(
    `the jobKey ${own?.jobKey} is known in queue ${queue} with another payload`,
    {
      reason: "IDEMPOTENCY_MISMATCH",
      code: "ALREADY_EXISTS",
    },
  );
}
