import { isA, textOf } from "../thrown.js";
import { FailAction } from "../v1/job_service_pb.js";
import type { Context } from "./context.js";
import type { LeasedJob } from "./leased.js";
import type { Link } from "./link.js";
import type { Logger } from "./logger.js";
import { Cancel, Dead, WaitFor } from "./outcomes.js";
import { errorOf, failItem, failureOf, type Settlement, settlementOf } from "./settling.js";

/** What a settler needs of its worker. */
export interface SettlerSettings {
  /** Where failures are logged. */
  readonly logger: Logger;
  /** Notes an attempt that has failed, or a job that is done. */
  noted(isFailure: boolean): void;
  /** Pushes the children of a job, which is held until then. */
  waitFor(context: Context, outcome: WaitFor): void;
}

/** Settles jobs by what their handlers returned or threw. */
export class Settler {
  /** `settled` is called with each job just before its settlement is sent; it returns whether its lease was held. */
  constructor(
    private readonly link: Link,
    private readonly settings: SettlerSettings,
    private readonly settled: (job: LeasedJob) => boolean,
  ) {}

  /** Settles a job by the value that its handler returned. */
  returned(context: Context, value: unknown): void {
    if (isA(value, Error)) {
      this.thrown(context, value);
      return;
    }
    try {
      this.send(context.job, settlementOf(context, value));
    } catch (error) {
      this.thrown(context, error); // a value that cannot be a result
    }
  }

  /** Settles a job by what its handler threw. */
  thrown(context: Context, error: unknown): void {
    if (isA(error, WaitFor) && !context.cancelReason) {
      this.settings.waitFor(context, error);
      return;
    }
    try {
      const settlement = failureOf(context, error);
      if (settlement !== "ack" && settlement?.kind === "fail" && !isGivenUp(error)) {
        this.logFailure(context, error);
      }
      this.send(context.job, settlement);
    } catch (broken) {
      const wrong = { type: "Error", message: `the error of the handler cannot be told: ${textOf(broken)}` };
      this.send(context.job, failItem(context.job, wrong));
    }
  }

  /** Sends what settles a job; nothing, where the server ends the lease. */
  send(job: LeasedJob, settlement: Settlement): void {
    if (settlement === undefined) return;
    // What has lost its lease has not failed by this, or is noted already.
    if (this.settled(job)) this.note(settlement);
    // One that is lost goes too: the session drops it, and counts it.
    if (settlement === "ack") this.link.ack(job);
    else this.link.settle(settlement);
  }

  private note(settlement: NonNullable<Settlement>): void {
    if (settlement === "ack" || settlement.kind === "ack") this.settings.noted(false);
    else if (settlement.kind === "fail" && settlement.item.then === FailAction.RETRY)
      this.settings.noted(true);
  }

  private logFailure(context: Context, error: unknown): void {
    if (context.cancelReason === "cancelled") return;
    const { type, message, stack } = errorOf(error);
    const why = stack || `${type}: ${message}`;
    this.settings.logger.warn(`attempt ${context.attempt} of ${context.job} failed: ${why}`);
  }
}

/** Whether a handler has ended its job on purpose: that is no failure of the attempt. A dead job has its own line. */
function isGivenUp(error: unknown): boolean {
  return isA(error, Cancel) || isA(error, Dead);
}
