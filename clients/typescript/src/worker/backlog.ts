import { TIMER_MAX } from "../timers.js";
import { JobBatches } from "./batches.js";
import type { LeasedJob } from "./leased.js";
import type { Route } from "./routes.js";

/** Calls that have begun and are still in the list, at least before it is cut. */
const BEGUN_MAX = 4_096;

/** One call of a handler to come. */
export interface Work {
  readonly route: Route;
  readonly jobs: readonly LeasedJob[];
}

/** Jobs at hand that have not started, in order; those of batch handlers gather first. */
export class Backlog {
  private queue: Work[] = [];
  private head = 0;
  private readonly batches = new JobBatches();
  private timer: NodeJS.Timeout | undefined;

  /** Adds a job; `wake` is called when a batch that waited has become due. */
  add(route: Route, job: LeasedJob, wake: () => void): void {
    if (route.size === 0) {
      this.queue.push({ route, jobs: [job] });
      return;
    }
    const batch = this.batches.add(performance.now(), route, job);
    if (batch) this.queue.push({ route, jobs: batch });
    else this.startTimer(wake);
  }

  /** Removes and returns the next call, if there is one. */
  next(): Work | undefined {
    const work = this.queue[this.head];
    if (!work) return undefined;
    this.head += 1;
    // Of a worker that never catches up, too, which would keep all that it has ever begun.
    if (this.head === this.queue.length || (this.head >= BEGUN_MAX && 2 * this.head >= this.queue.length)) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    return work;
  }

  /** Drops all jobs. */
  clear(): void {
    this.queue = [];
    this.head = 0;
    this.batches.clear();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private startTimer(wake: () => void): void {
    const { deadline } = this.batches;
    if (this.timer || deadline === undefined) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        for (const [route, jobs] of this.batches.due(performance.now())) this.queue.push({ route, jobs });
        this.startTimer(wake);
        wake();
      },
      Math.min(Math.max(1, Math.ceil(deadline - performance.now())), TIMER_MAX),
    );
  }
}
