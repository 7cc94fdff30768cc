import type { LeasedJob } from "./leased.js";
import type { Route } from "./routes.js";

interface Waiting {
  jobs: LeasedJob[];
  dueAt: number;
}

/** Jobs of batch handlers, until there are enough or the first has waited long enough. Pure. */
export class JobBatches {
  private readonly waiting = new Map<Route, Waiting>();

  /** Adds a job; returns the batch that it completes, if any. */
  add(now: number, route: Route, job: LeasedJob): LeasedJob[] | undefined {
    let waiting = this.waiting.get(route);
    if (!waiting) {
      waiting = { jobs: [], dueAt: now + route.wait };
      this.waiting.set(route, waiting);
    }
    waiting.jobs.push(job);
    if (waiting.jobs.length < route.size) return undefined;
    this.waiting.delete(route);
    return waiting.jobs;
  }

  /** Removes and returns the batches whose first job has waited long enough. */
  due(now: number): [Route, LeasedJob[]][] {
    const due: [Route, LeasedJob[]][] = [];
    for (const [route, { jobs, dueAt }] of this.waiting) {
      if (dueAt > now) continue;
      this.waiting.delete(route);
      due.push([route, jobs]);
    }
    return due;
  }

  /** When the next batch is due. */
  get deadline(): number | undefined {
    const dues = [...this.waiting.values()].map((waiting) => waiting.dueAt);
    return dues.length > 0 ? Math.min(...dues) : undefined;
  }

  /** Drops all jobs. */
  clear(): void {
    this.waiting.clear();
  }
}
