import { ClientClosed, InvalidArgument } from "../errors.js";
import { type ResolvedAddress, resolved } from "../identity.js";
import { type JobType, jobTypeOf } from "../job_type.js";
import type { WorkerStats } from "./link.js";
import type { Middleware } from "./middleware.js";
import { type BatchHandler, type BatchOptions, type Handler, Routes } from "./routes.js";
import { openingOf, type Settings, settingsOf, type WorkerOptions } from "./settings.js";
import { onSignals } from "./stop_signals.js";
import { WorkerRun } from "./worker_run.js";

const NOT_STARTED: WorkerStats = {
  ...{ done: 0, failed: 0, released: 0, lost: 0, running: 0 },
  ...{ stuck: 0, waiting: 0, window: 0, paused: false, connected: false },
};

/**
 * Runs jobs: handlers by queue and name, fed by one stream that a thread of its own holds.
 *
 * ```ts
 * const worker = new Worker({ target: "localhost:7070", signals: ["SIGTERM", "SIGINT"] });
 * worker.handle(welcome, async ({ to }, context) => ({ sent: to }));
 * await worker.run();
 * ```
 *
 * What a handler returns is the job's result. What it throws fails the attempt, unless it is an outcome: `Retry`,
 * `Snooze`, `Cancel`, `Dead`, `RateLimited`, `WaitFor`. A worker runs once.
 */
export class Worker<S = undefined> implements AsyncDisposable {
  // Hidden, as whatever may have a token is: nobody shows one who looks at a worker.
  readonly #options: WorkerOptions<S>;
  readonly #address: ResolvedAddress;
  #current: Promise<WorkerRun> | undefined;
  #running: WorkerRun | undefined;
  private readonly settings: Settings;
  private readonly routes = new Routes();
  private state: S | undefined;
  private isStopRequested = false;

  /** Makes a worker. Throws InvalidArgument for settings out of bounds. */
  constructor(options: WorkerOptions<S> = {}) {
    this.settings = settingsOf(options);
    this.#options = options;
    this.#address = resolved(options);
  }

  /** Adds a handler for a declared job, or for the jobs of a queue that have no name. Returns the worker. */
  handle<P, R>(job: JobType<P, R> | string, handler: Handler<NoInfer<P>, NoInfer<R>, S>): this {
    this.refuseStarted();
    this.routes.add(jobTypeOf(job), handler);
    return this;
  }

  /**
   * Adds a handler that gets many jobs at once: up to `size`, the first of which waits for others. It returns an
   * answer for each, in order or by id; a job that it forgets has failed.
   */
  handleBatch<P, R>(
    job: JobType<P, R> | string,
    options: BatchOptions,
    handler: BatchHandler<NoInfer<P>, NoInfer<R>, S>,
  ): this {
    this.refuseStarted();
    this.routes.addBatch(jobTypeOf(job), options, handler);
    return this;
  }

  /** Connects, and returns when the server has answered. Throws what no second try changes. */
  async start(): Promise<void> {
    await (await this.begun()).whenOpened;
  }

  /** Works until `stop`, or one of the `signals`. Throws what no second try changes. */
  async run(): Promise<void> {
    await (await this.begun()).whenFinished;
  }

  /**
   * Stops: no more jobs are taken, and running handlers may finish; after `softStop` their signals fire, after
   * `hardStop` what is left is released. Again: the next stage at once. Returns when the worker has stopped;
   * what made it stop by itself, `start` or `run` throw.
   */
  async stop(): Promise<void> {
    this.isStopRequested = true;
    const run = await this.#current?.catch(() => undefined);
    run?.stop();
    await run?.whenFinished.catch(() => undefined);
  }

  /** Stops the worker at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** What the worker has done since it started, and what it is doing. */
  get stats(): WorkerStats {
    return this.#running?.stats ?? NOT_STARTED;
  }

  /** The port of `/healthz` and `/metrics`; undefined without one, and until it is open. */
  get healthPort(): number | undefined {
    return this.#running?.healthPort;
  }

  private begun(): Promise<WorkerRun> {
    this.#current ??= this.begin();
    return this.#current;
  }

  private async begin(): Promise<WorkerRun> {
    if (this.isStopRequested) throw new ClientClosed("the worker has stopped");
    const opening = openingOf(this.#options, this.routes);
    this.state = await this.#options.state?.();
    const run = new WorkerRun({
      address: this.#address,
      settings: this.settings,
      routes: this.routes,
      opening,
      middleware: (this.#options.middleware ?? []) as unknown as readonly Middleware[],
      state: this.state,
    });
    this.#running = run;
    this.stopOnSignals(run);
    return run;
  }

  private stopOnSignals(run: WorkerRun): void {
    const signals = this.#options.signals ?? [];
    const forget = onSignals(signals, () => run.stop());
    const over = async () => {
      forget();
      await disposeOf(this.state);
    };
    run.whenFinished.then(over, over).catch((error: unknown) => {
      this.settings.logger.error(`the state of the worker could not be disposed of: ${String(error)}`);
    });
  }

  private refuseStarted(): void {
    if (this.#current) throw new InvalidArgument("the worker has started: add handlers before");
  }
}

async function disposeOf(state: unknown): Promise<void> {
  if (typeof state !== "object" || state === null) return;
  if (Symbol.asyncDispose in state) await (state as AsyncDisposable)[Symbol.asyncDispose]();
  else if (Symbol.dispose in state) (state as Disposable)[Symbol.dispose]();
}
