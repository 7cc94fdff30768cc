import type { PushCall } from "../client.js";
import { decodePayload, type JobType } from "../job_type.js";
import { isPromise } from "../promises.js";
import type { Pushed } from "../push/answers.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import type { LogEntry } from "../stream/log_lines.js";
import type { LostLease } from "../stream/received.js";
import type { Report } from "../stream/reports.js";
import type { Delivered } from "../thread/messages.js";
import type { FlowNode } from "../v1/flow_service_pb.js";
import { RevokeReason } from "../v1/job_service_pb.js";
import { answersOf } from "./answers.js";
import { Backlog, type Work } from "./backlog.js";
import { childrenOf } from "./children.js";
import { Context, type ContextHost } from "./context.js";
import { LeasedJob } from "./leased.js";
import type { Link } from "./link.js";
import { wholeCall } from "./middleware.js";
import { cancelReasonOf } from "./outcomes.js";
import type { Route, Routes } from "./routes.js";
import type { RunnerSettings } from "./runner_settings.js";
import { Run } from "./runs.js";
import { Settler } from "./settler.js";
import { cancelledItem, timedOutItem, unhandledItem } from "./settling.js";

/** Handlers that begin in one turn of the event loop: the program's other work has a right to it, too. */
const CALLS_A_TURN = 64;

/** Runs jobs: finds their handlers, begins as many as may run at once, and settles each by its outcome. */
export class Runner implements ContextHost {
  /** Leases that are not settled, by id. */
  private readonly held = new Map<bigint, LeasedJob>();
  private readonly contexts = new Map<LeasedJob, Context>();
  private readonly backlog = new Backlog();
  private readonly settler: Settler;
  private isPumping = false;
  private isPumpDue = false;
  private isClosed = false;
  private isPaused = false;
  readonly codec: PayloadCodec | undefined;
  /** What runs. */
  readonly running = new Set<Run>();
  /** Handlers that ran on after their grace period. */
  readonly stuck = new Set<Run>();

  /** Makes a runner without work. */
  constructor(
    private readonly routes: Routes,
    private readonly link: Link,
    private readonly settings: RunnerSettings,
  ) {
    const settled = (job: LeasedJob) => this.holds(job) && this.held.delete(job.id);
    this.codec = settings.codec;
    this.settler = new Settler(link, settings, settled);
  }

  /** Takes what a frame brought. */
  take({ runs, jobs, lost }: Delivered): void {
    for (const lease of lost) this.lose(lease);
    if (this.isClosed || this.isPaused) return; // the thread of the stream releases them
    for (const run of runs) this.add(LeasedJob.ofRun(run));
    if (jobs.length > 0) for (const job of jobs) this.add([LeasedJob.ofMessage(job)]);
    this.pump();
  }

  /** Starts nothing more. */
  close(): void {
    this.isClosed = true;
    this.backlog.clear();
  }

  /** The jobs whose handlers run. */
  get runningJobs(): LeasedJob[] {
    return [...this.contexts.keys()];
  }

  /** Starts nothing for a while, and drops all but the jobs to keep: the thread of the stream releases them. */
  pause(kept: readonly LeasedJob[]): void {
    this.isPaused = true;
    this.backlog.clear();
    const left = kept.filter((job) => this.holds(job));
    this.held.clear();
    for (const job of left) this.held.set(job.id, job);
  }

  /** Starts jobs again. */
  resume(): void {
    this.isPaused = false;
  }

  /** Asks all handlers to stop. */
  stopAll(): void {
    for (const context of this.contexts.values()) context.cancel("stopping");
  }

  /** Sets when handlers will be asked to stop. */
  setDeadline(deadline: Date): void {
    for (const context of this.contexts.values()) {
      if (!context.deadline || context.deadline > deadline) context.deadline = deadline;
    }
  }

  /** Whether the lease of a job is held and not settled. */
  holds(job: LeasedJob): boolean {
    return this.held.get(job.id) === job;
  }

  /** Drops a lease that another call has ended, or found to be lost. */
  leave(job: LeasedJob, isLost: boolean): void {
    if (this.holds(job)) this.held.delete(job.id);
    this.link.say({ kind: "leave", lease: [job.id, job.delivery], isLost });
  }

  /** Fails a job by an error beside its handler. */
  fail(context: Context, error: unknown): void {
    this.settler.thrown(context, error);
  }

  // ---------------------------------------------------------------------- for contexts

  report(job: LeasedJob, report: Report): void {
    if (this.holds(job)) this.link.report(job, report);
  }

  log(job: LeasedJob, entry: LogEntry): void {
    if (this.holds(job)) this.link.log(job, entry);
  }

  push<P>(job: JobType<P, unknown> | string, payload: NoInfer<P>, options: PushCall): Promise<Pushed> {
    return this.settings.client().push(job, payload, options);
  }

  children(id: bigint): Promise<FlowNode[]> {
    return childrenOf(this.settings.client(), id);
  }

  // ---------------------------------------------------------------------- jobs in, handlers on

  /** Adds jobs of one queue and name. */
  private add(jobs: readonly LeasedJob[]): void {
    const [first] = jobs;
    const route = first && this.routes.find(first.queue, first.name);
    for (const job of jobs) {
      if (!route) {
        this.settings.logger.warn(`no handler for ${job}: given back`);
        this.link.settle(unhandledItem(job));
        continue;
      }
      this.held.set(job.id, job);
      this.backlog.add(route, job, () => this.pump());
    }
  }

  private lose({ id, delivery, reason }: LostLease): void {
    const job = this.held.get(id);
    if (job?.delivery !== delivery) return;
    const context = this.contexts.get(job);
    if (reason !== RevokeReason.CANCELLED) this.held.delete(id);
    // Its handler stops, and settles nothing: the server has ended the attempt.
    if (reason === RevokeReason.TIMEOUT) this.settings.noted(true);
    if (context) context.cancel(cancelReasonOf(reason));
    else if (reason === RevokeReason.CANCELLED) {
      this.held.delete(id);
      this.link.settle(cancelledItem(job));
    }
  }

  private pumpSoon(): void {
    if (this.isPumpDue) return;
    this.isPumpDue = true;
    setImmediate(() => {
      this.isPumpDue = false;
      this.pump();
    });
  }

  /** Begins as many handlers as may run. */
  private pump(): void {
    if (this.isPumping) return; // a handler that ended at once: the loop below goes on
    this.isPumping = true;
    for (let calls = 0; this.running.size < this.settings.concurrency; calls += 1) {
      if (calls >= CALLS_A_TURN) {
        this.pumpSoon();
        break;
      }
      const work = this.backlog.next();
      if (!work) break;
      this.link.flushOld(performance.now());
      this.begin(work);
    }
    this.isPumping = false;
  }

  private begin({ route, jobs }: Work): void {
    const contexts: Context[] = [];
    const payloads: unknown[] = [];
    for (const job of jobs) {
      if (!this.holds(job)) continue; // its lease was lost while it waited
      const context = new Context(job, this, this.settings.state);
      try {
        payloads.push(decodePayload(route.job, context.open(job.payload)));
        contexts.push(context);
      } catch (error) {
        this.settler.thrown(context, error);
      }
    }
    if (contexts.length === 0) return;
    const run = new Run(contexts, this.settings.cancelGrace, (stuck) => this.giveUp(stuck));
    this.running.add(run);
    for (const context of contexts) this.contexts.set(context.job, context);
    const { health } = this.settings;
    if (health) {
      run.began = performance.now();
      health.running(this.contexts.size);
    }
    this.call(route, run, payloads);
  }

  private call(route: Route, run: Run, payloads: readonly unknown[]): void {
    const { contexts } = run;
    try {
      const value = wholeCall(this.settings, route, contexts, payloads)();
      if (isPromise(value)) {
        // Once: what is like a promise may call back as often as it likes.
        Promise.resolve(value).then(
          (settled) => this.handleReturned(route, run, settled),
          (error: unknown) => this.handleThrown(run, error),
        );
      } else {
        this.handleReturned(route, run, value);
      }
    } catch (error) {
      this.handleThrown(run, error);
    }
  }

  // ---------------------------------------------------------------------- how handlers end

  private handleReturned(route: Route, run: Run, value: unknown): void {
    if (!run.isGivenUp) {
      if (route.call) this.settler.returned(run.contexts[0] as Context, value);
      else this.handleAnswers(run, value);
    }
    this.end(run);
  }

  private handleAnswers({ contexts }: Run, value: unknown): void {
    try {
      for (const [context, answer] of answersOf(contexts, value)) this.settler.returned(context, answer);
    } catch (error) {
      for (const context of contexts) this.settler.thrown(context, error); // an answer that cannot be read
    }
  }

  private handleThrown(run: Run, error: unknown): void {
    if (!run.isGivenUp) for (const context of run.contexts) this.settler.thrown(context, error);
    this.end(run);
  }

  private end(run: Run): void {
    run.end();
    if (this.stuck.delete(run)) {
      this.settings.logger.warn(`the handler of ${run} has ended at last; what it said is dropped`);
      return;
    }
    this.running.delete(run);
    for (const { job } of run.contexts) this.contexts.delete(job);
    this.settings.health?.ended(run.name, performance.now() - run.began, this.contexts.size);
    this.settings.ended();
    if (!this.isPumping) this.pumpSoon();
  }

  /** Replaces a handler that ignores its end: another one gets its place, and what it says is dropped. */
  private giveUp(run: Run): void {
    const { logger, concurrency } = this.settings;
    if (!this.running.has(run) || this.isClosed) return;
    if (this.stuck.size >= concurrency) {
      logger.error(
        `${this.stuck.size} handlers hang on after their end: no more are replaced; restart this process`,
      );
      return;
    }
    const why = run.contexts[0]?.cancelReason;
    logger.error(`the handler of ${run} ignores its end (${why}): its place is given to another`);
    run.isGivenUp = true;
    this.running.delete(run);
    this.stuck.add(run);
    for (const { job } of run.contexts) {
      this.contexts.delete(job);
      // Nothing else would settle it.
      if (this.holds(job))
        this.settler.send(job, why === "cancelled" ? cancelledItem(job) : timedOutItem(job));
    }
    this.settings.health?.abandoned(this.contexts.size);
    this.pumpSoon();
  }
}
