import { TIMER_MAX } from "../timers.js";
import type { Context } from "./context.js";

/** One call of a handler, for one job or those of a batch. */
export class Run {
  /** Another run has its place, and what it says is dropped. */
  isGivenUp = false;
  /** When it began, if somebody measures it. */
  began = 0;
  private readonly timers: NodeJS.Timeout[] = [];

  /** Begins a run. */
  constructor(
    readonly contexts: readonly Context[],
    private readonly grace: number,
    private readonly onStuck: (run: Run) => void,
  ) {
    for (const context of contexts) {
      context.onCancel = () => this.handleCancel();
      const timeout = timeoutOf(context);
      if (timeout > 0) this.startTimeout(context, timeout);
    }
  }

  /** The name of its jobs. */
  get name(): string {
    return this.contexts[0]?.job.name ?? "";
  }

  /** Ends the run. */
  end(): void {
    for (const timer of this.timers) clearTimeout(timer);
  }

  /** What it is about, for the log. */
  toString(): string {
    return this.contexts.map((context) => String(context.job)).join(", ");
  }

  private startTimeout(context: Context, timeout: number): void {
    context.deadline = new Date(Date.now() + timeout);
    // The server revokes the lease of a longer one.
    if (timeout > TIMER_MAX) return;
    this.timers.push(setTimeout(() => context.cancel("timeout"), timeout));
  }

  /** A batch counts as stopping when all of its jobs should stop. */
  private handleCancel(): void {
    if (!this.contexts.every((context) => context.cancelReason)) return;
    this.timers.push(setTimeout(() => this.onStuck(this), Math.min(this.grace, TIMER_MAX)).unref());
  }
}

function timeoutOf({ job }: Context): number {
  const { timeout } = job.options;
  return timeout ? Number(timeout.seconds) * 1_000 + timeout.nanos / 1e6 : 0;
}
