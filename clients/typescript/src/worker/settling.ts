import { create } from "@bufbuild/protobuf";
import { cutText, encode } from "../codec.js";
import { durationMessage, timestampMessage } from "../duration.js";
import { CodecError, KeyErased } from "../errors.js";
import type { SettleItem } from "../stream/settles.js";
import { isA, readText, textOf } from "../thrown.js";
import { JobErrorSchema } from "../v1/job_pb.js";
import { FailAction, FailItemSchema, ReleaseItemSchema, ReleaseReason } from "../v1/job_service_pb.js";
import type { Context } from "./context.js";
import type { LeasedJob } from "./leased.js";
import { Cancel, Dead, Outcome, RateLimited, Retry, Snooze } from "./outcomes.js";

/** Delay of a job whose name has no handler here: another worker may have one. */
const UNHANDLED_DELAY = 5_000;
/** The server refuses a larger one, and with it the stream. */
const RESULT_BYTES_MAX = 1 << 20;
const TYPE_MAX = 256;
const MESSAGE_BYTES_MAX = 4 << 10;
const STACK_BYTES_MAX = 16 << 10;
/** Causes of an error, and errors of an AggregateError, that are told with it. */
const CHAIN_MAX = 5;
/** Frames of a stack that call handlers: those of this package, of Node, and of the language. */
const ABOVE = [new URL("../", import.meta.url).href, "node:", "[nodejs.", "(<anonymous>)"];

/** What settles a job: nothing more than an ack, an item, or nothing at all. */
export type Settlement = "ack" | SettleItem | undefined;

/** Returns what settles a job by the value that its handler returned. Throws CodecError for no result. */
export function settlementOf(context: Context, value: unknown): Settlement {
  if (value === undefined) return "ack";
  if (isA(value, Error)) return failureOf(context, value);
  const plain = encode(value);
  const data = context.seal(plain.data, plain.isJson);
  if (data.length > RESULT_BYTES_MAX) {
    throw new CodecError(`a result is at most 1 MiB, not ${data.length} bytes`);
  }
  const { id, delivery } = context;
  return data.length === 0 ? "ack" : { kind: "ack", id, delivery, result: data };
}

/** Returns what settles a job by what its handler threw: an outcome, the end of a handler, or a failure. */
export function failureOf(context: Context, thrown: unknown): Settlement {
  const { job } = context;
  if (context.isStop(thrown)) return stoppedOf(context);
  if (isA(thrown, KeyErased)) return failItem(job, errorOf(thrown), FailAction.DEAD);
  if (!isA(thrown, Outcome)) return failItem(job, errorOf(thrown));
  if (isA(thrown, Retry)) {
    const wrong =
      thrown.cause === undefined ? { type: "Retry", message: thrown.message } : errorOf(thrown.cause);
    const item = failItem(job, wrong, FailAction.RETRY, thrown.after);
    return item.kind === "fail" ? { ...item, isAsked: true } : item;
  }
  if (isA(thrown, Snooze)) return releaseItem(job, ReleaseReason.SNOOZE, thrown.after);
  if (isA(thrown, RateLimited)) return limitedItem(job, thrown);
  if (isA(thrown, Cancel)) return failItem(job, whyOf(thrown), FailAction.CANCEL);
  if (isA(thrown, Dead)) return failItem(job, whyOf(thrown), FailAction.DEAD);
  return failItem(job, errorOf(thrown));
}

/** Returns what settles a job whose handler ended because it was asked to. */
function stoppedOf({ job, cancelReason }: Context): Settlement {
  if (cancelReason === "cancelled") return cancelledItem(job);
  if (cancelReason !== "stopping") return undefined; // the server ends, or has ended, this lease
  // One that may run only once has begun: whether it may run again is a matter of its attempts.
  if (job.isOnce)
    return failItem(job, { type: "Interrupted", message: "the worker stopped while the job ran" });
  return releaseItem(job, ReleaseReason.INTERRUPTED);
}

interface ErrorInit {
  type: string;
  message: string;
  stack?: string;
}

/** Returns the error of anything that was thrown. Never throws. */
export function errorOf(thrown: unknown): Required<ErrorInit> {
  if (!isA(thrown, Error)) return { type: typeof thrown, message: textOf(thrown), stack: "" };
  return {
    type: readText(() => thrown.name || thrown.constructor.name, "Error"),
    message: readText(() => messageOf(thrown), "an error whose message cannot be read"),
    stack: readText(() => stackOf(thrown), ""),
  };
}

/** Returns the message of an error. Node's sockets fail with an AggregateError that has none of its own. */
function messageOf(error: Error): string {
  if (error.message) return error.message;
  return partsOf(error)
    .map((part) => (isA(part, Error) ? part.message : textOf(part)))
    .join("; ");
}

/** Returns the first errors of an AggregateError, as many as are told; none of any other error. */
function partsOf(error: Error): readonly unknown[] {
  return isA(error, AggregateError) ? error.errors.slice(0, CHAIN_MAX) : [];
}

/** Returns the stack of an error and of what caused it, outermost first. */
function stackOf(error: Error): string {
  const stacks: string[] = [];
  for (let one: unknown = error; isA(one, Error) && stacks.length < CHAIN_MAX; one = one.cause) {
    const parts = partsOf(one).map((part) => (isA(part, Error) ? ownStackOf(part) : textOf(part)));
    stacks.push([ownStackOf(one), ...parts].join("\nOne of: "));
  }
  return stacks.join("\nCaused by: ");
}

/** Returns the stack of one error from the handler's own frame on: how it came to be called is the same each time. */
function ownStackOf(error: Error): string {
  const lines = (error.stack ?? String(error)).split("\n");
  const isAbove = (line: string) => /^ +at /.test(line) && ABOVE.some((part) => line.includes(part));
  while (isAbove(lines.at(-1) ?? "")) lines.pop();
  return lines.join("\n");
}

function whyOf(outcome: Cancel | Dead): ErrorInit {
  if (outcome.cause === undefined) return { type: outcome.name, message: textOf(outcome.reason) };
  const cause = errorOf(outcome.cause);
  return { ...cause, message: [textOf(outcome.reason), cause.message].filter(Boolean).join(": ") };
}

/** Returns the settle of a job that failed; the error is cut as the server would cut it. */
export function failItem(
  { id, delivery }: LeasedJob,
  error: ErrorInit | undefined,
  then = FailAction.RETRY,
  retryAfter?: number,
): SettleItem {
  const made = error && {
    type: error.type.replace(/\p{Cc}/gu, "").slice(0, TYPE_MAX),
    message: cutText(clean(error.message), MESSAGE_BYTES_MAX),
    stack: cutText(clean(error.stack ?? ""), STACK_BYTES_MAX),
  };
  const item = create(FailItemSchema, {
    id,
    delivery,
    then,
    ...(made && { error: create(JobErrorSchema, made) }),
    ...(retryAfter !== undefined && { retryAfter: durationMessage(retryAfter, "after") }),
  });
  return { kind: "fail", item };
}

/** Control characters other than line breaks and tabs are in no message. */
function clean(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "");
}

/** Returns the settle that confirms the cancellation of a job. */
export function cancelledItem(job: LeasedJob): SettleItem {
  return failItem(job, undefined, FailAction.CANCEL);
}

/** Returns the settle of an attempt that took too long, where the server has not ended it itself. */
export function timedOutItem(job: LeasedJob): SettleItem {
  return failItem(job, {
    type: "timeout",
    message: "the attempt took too long, and its handler did not stop",
  });
}

/** Returns the settle of a job that has no handler here. */
export function unhandledItem(job: LeasedJob): SettleItem {
  return releaseItem(job, ReleaseReason.UNHANDLED, UNHANDLED_DELAY);
}

function releaseItem({ id, delivery }: LeasedJob, why: ReleaseReason, delay = 0): SettleItem {
  const item = create(ReleaseItemSchema, {
    id,
    delivery,
    why,
    ...(delay > 0 && { delay: durationMessage(delay, "after") }),
  });
  return { kind: "release", item };
}

function limitedItem({ id, delivery }: LeasedJob, { until, limiter }: RateLimited): SettleItem {
  const item = create(ReleaseItemSchema, {
    id,
    delivery,
    why: ReleaseReason.LIMITED,
    until: timestampMessage(until, "until"),
    limiter,
  });
  return { kind: "release", item };
}
