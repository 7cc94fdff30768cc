import { GroupFull, InvalidArgument, type JoblineError, ResourceExhausted, TooLarge } from "../errors.js";
import { isDefinite, mayRepeat } from "../status.js";
import type { Batch, Own } from "./batch.js";
import type { PushBatcher } from "./batcher.js";
import type { BatchKey } from "./messages.js";

const OF_COLUMNS = ["payloads", "jobs", "job_keys", "unique_keys", "header_columns", "groups"];

/** Handles a call that failed. Returns whether the batch is done, and its pushes must be answered. */
export function handleError<W>(
  batcher: PushBatcher<BatchKey, W>,
  now: number,
  batch: Batch<BatchKey, W>,
  error: JoblineError,
): boolean {
  if (isOfSomePushes(error, batch)) return !batcher.handleRefused(batch);
  if (!mayRepeat(error, batch.tries)) {
    batcher.handleDone(batch, isDefinite(error, batch.tries));
    return true;
  }
  return !batcher.handleUnknown(now, batch, error.retryAfter);
}

/** Returns whether the refusal is, or may be, about some of the pushes and not the others. */
function isOfSomePushes(error: JoblineError, batch: Batch<BatchKey, unknown>): boolean {
  const owns = batch.pushes.map((push) => push.own);
  if (error instanceof InvalidArgument) {
    const { field } = error;
    if (field === undefined || OF_COLUMNS.some((column) => field.startsWith(column))) return true;
    // What is wrong with it matters for jobs with a unique key alone.
    if (field.startsWith("options.unique")) return isMixed(owns, "uniqueKey");
    return field.startsWith("options.headers") && new Set(owns.map((own) => own.headers)).size > 1;
  }
  if (error instanceof TooLarge || error instanceof GroupFull) return true;
  // Jobs with a key and jobs without one count towards different limits.
  const areMixed = isMixed(owns, "jobKey") || isMixed(owns, "uniqueKey");
  return areMixed && error instanceof ResourceExhausted;
}

function isMixed(owns: readonly Own[], key: "jobKey" | "uniqueKey"): boolean {
  return owns.some((own) => own[key]) && owns.some((own) => !own[key]);
}
