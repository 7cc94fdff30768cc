import type { Logger } from "./logger.js";

/** When a worker takes no more jobs for a while; see `WorkerOptions.pauseAfterFailures`. */
export interface FailurePauseSettings {
  /** How many attempts must have failed, one after the other. */
  readonly failures: number;
  /** How long the pause is, in milliseconds. */
  readonly pause: number;
}

/**
 * Counts attempts that fail in a row. What a job needs may be down: its worker would fail one job after the other,
 * and use up their attempts. After a pause the next failure is enough for another one, until a job succeeds.
 */
export class FailurePause {
  private inARow = 0;
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  /** Makes a counter; `set` is called when a pause begins and when it ends. */
  constructor(
    private readonly settings: FailurePauseSettings,
    private readonly logger: Logger,
    private readonly set: (isPaused: boolean) => void,
  ) {}

  /** Whether no jobs are taken. */
  get isPaused(): boolean {
    return this.timer !== undefined;
  }

  /** Notes an attempt that has failed, or a job that is done. */
  note(isFailure: boolean): void {
    this.inARow = isFailure ? this.inARow + 1 : 0;
    const { failures, pause } = this.settings;
    if (this.inARow < failures || this.isPaused || this.isClosed) return;
    this.logger.error(
      `${this.inARow} attempts in a row have failed: no jobs are taken for ${pause / 1_000} s`,
    );
    this.timer = setTimeout(() => this.resume(), pause);
    this.set(true);
  }

  /** Pauses no more: the worker stops. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private resume(): void {
    this.timer = undefined;
    this.inARow = Math.min(this.inARow, this.settings.failures - 1);
    this.logger.info("the pause after failures is over: jobs are taken again");
    this.set(false);
  }
}
