import { boundedMilliseconds, type Duration, milliseconds } from "../duration.js";
import { InvalidArgument } from "../errors.js";
import { FlowJob } from "../flows.js";
import { refuseNoArray, wrongly } from "../given.js";
import { isA } from "../thrown.js";
import { RevokeReason } from "../v1/job_service_pb.js";

const DAY = 86_400_000;

/**
 * What a handler may say instead of returning a value or failing: throw one of these, or return it. Each is an
 * error, so that it ends a handler from wherever it is thrown.
 */
export abstract class Outcome extends Error {
  /** Makes an outcome. */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * Fail this attempt, and try again after a pause (up to 24 h; default: the job's backoff). It uses an attempt;
 * without one left the job is dead. `cause` is what went wrong.
 */
export class Retry extends Outcome {
  /** The pause in milliseconds, if one was given. */
  readonly after: number | undefined;

  /** Makes the outcome. Throws InvalidArgument for a pause out of bounds. */
  constructor(after?: Duration, options: { cause?: unknown } = {}) {
    super("the handler asked for a retry", options);
    this.after = after === undefined ? undefined : boundedMilliseconds(after, "after", DAY);
  }
}

/** Not now: release the job for a time, up to 400 days. It uses no attempt; ≤ 1,000 times a job. */
export class Snooze extends Outcome {
  /** The time in milliseconds. */
  readonly after: number;

  /** Makes the outcome. Throws InvalidArgument for a time out of bounds. */
  constructor(after: Duration) {
    super("snoozed");
    this.after = boundedMilliseconds(after, "after", 400 * DAY);
  }
}

/** Not at all: the job is cancelled. `reason` is kept as its error. */
export class Cancel extends Outcome {
  /** Makes the outcome. */
  constructor(
    readonly reason = "",
    options: { cause?: unknown } = {},
  ) {
    super(reason, options);
  }
}

/** Never again: the job goes to the dead letters, whatever attempts it has left. */
export class Dead extends Outcome {
  /** Makes the outcome. */
  constructor(
    readonly reason = "",
    options: { cause?: unknown } = {},
  ) {
    super(reason, options);
  }
}

/**
 * A limit is reached, such as a 429: release the job, and hand out nothing more of the limiter until then. It
 * uses no attempt. Without a limiter it is the job's group that waits, or its queue if it has none.
 */
export class RateLimited extends Outcome {
  /** Until when nothing goes out. */
  readonly until: Date;
  /** The limiter, one of the job's `limiters`; "" without one. */
  readonly limiter: string;

  /** Makes the outcome: `until` is a moment, or a span from now. */
  constructor(until: Date | Duration, limiter = "") {
    super("a limit is reached");
    this.until = until instanceof Date ? until : new Date(Date.now() + milliseconds(until, "until"));
    if (Number.isNaN(this.until.getTime())) throw new InvalidArgument("until: must be a valid Date");
    if (typeof limiter !== "string") throw wrongly("limiter", "the name of one", limiter);
    this.limiter = limiter;
  }
}

/**
 * Not yet: push these jobs, and wait for them. The job is blocked and holds no place of the worker; when they
 * have ended, its handler is called anew, with its checkpoint and the same attempt. Its children's results come
 * from `context.children()`. All are stored, together with the end of this delivery, or none.
 */
export class WaitFor extends Outcome {
  /** The children. */
  readonly children: readonly FlowJob[];

  /** Makes the outcome. Throws InvalidArgument without children. */
  constructor(...children: FlowJob[]) {
    super(`waits for ${children.length} children`);
    if (children.length === 0) throw new InvalidArgument("a job needs at least one child to wait for");
    refuseNoArray("children", "FlowJobs", children, (child) => child instanceof FlowJob);
    this.children = children;
  }
}

/** Returns whether a handler has failed by what it threw or returned: asked to wait or to stop, it has not. */
export function isFailure(outcome: unknown): boolean {
  if (!isA(outcome, Error)) return false;
  return !isA(outcome, Outcome) || isA(outcome, Retry) || isA(outcome, Dead);
}

/** Why a handler should stop. */
export type CancelReason = "cancelled" | "timeout" | "lease lost" | "queue deleted" | "stopping";

const REASONS: Partial<Record<RevokeReason, CancelReason>> = {
  [RevokeReason.CANCELLED]: "cancelled",
  [RevokeReason.TIMEOUT]: "timeout",
  [RevokeReason.QUEUE_DELETED]: "queue deleted",
};

/** Returns why a handler should stop whose lease the server has taken back. */
export function cancelReasonOf(reason: RevokeReason): CancelReason {
  return REASONS[reason] ?? "lease lost";
}

/** The reason of a handler's `AbortSignal`: the handler was asked to stop. */
export class Stopped extends Outcome {
  /** Makes the reason. */
  constructor(readonly why: CancelReason) {
    super(`the handler should stop: ${why}`);
  }
}
