import { Client } from "../client.js";
import * as errors from "../errors.js";
import { type ResolvedAddress, tokenOf } from "../identity.js";
import { COUNTERS, type FromStream, type StreamAddress } from "../thread/messages.js";
import { cellsFor, type HealthSettings, HealthWriter, labelsOf } from "../thread/shared_health.js";
import { TIMER_MAX } from "../timers.js";
import { Children } from "./children.js";
import { Drain, Stage } from "./drain.js";
import { FailurePause } from "./failure_pause.js";
import type { LeasedJob } from "./leased.js";
import { Link, leaseOf, statsOf, type WorkerStats } from "./link.js";
import type { Middleware } from "./middleware.js";
import type { Routes } from "./routes.js";
import { Runner } from "./runner.js";
import type { Settings } from "./settings.js";

/** Milliseconds for the function that returns the token of now. */
const TOKEN_MAX = 10_000;

/** What a run of a worker is made of. */
export interface RunParts {
  readonly address: ResolvedAddress;
  readonly settings: Settings;
  readonly routes: Routes;
  readonly opening: Uint8Array;
  readonly middleware: readonly Middleware[];
  readonly state: unknown;
}

/** The parts of a running worker, wired together, from its start to its stop. */
export class WorkerRun {
  private readonly counters = new SharedArrayBuffer(8 * COUNTERS);
  private readonly link: Link;
  private readonly runner: Runner;
  private readonly drain: Drain;
  private readonly children: Children;
  private readonly health: HealthWriter | undefined;
  private readonly failures: FailurePause | undefined;
  private client: Client | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isThreadEnded = false;
  private isStepping = false;
  private failure: errors.JoblineError | undefined;
  private readonly opened = withResolvers<void>();
  private readonly finished = withResolvers<void>();

  /** The port of `/healthz` and `/metrics`, once it is open. */
  healthPort: number | undefined;

  /** Opens the stream, in its thread. */
  constructor(private readonly parts: RunParts) {
    const { settings, address, opening, routes, middleware, state } = parts;
    this.opened.promise.catch(() => undefined); // `start` may not be waiting any more
    this.finished.promise.catch(() => undefined);
    this.drain = new Drain(settings.softStop, settings.hardStop);
    const health = healthOf(settings, routes);
    this.health = health && new HealthWriter(health);
    const { failurePause, logger } = settings;
    this.failures =
      failurePause && new FailurePause(failurePause, logger, (isPaused) => this.pause(isPaused));
    const sizes = routes.all.map((route) => Math.max(1, route.size));
    this.link = new Link(
      {
        address: streamAddress(address),
        opening,
        runners: settings.concurrency * Math.max(...sizes),
        window: settings.window,
        windowBytes: settings.windowBytes,
        counters: this.counters,
        health,
      },
      (message) => this.handle(message),
    );
    const client = () => this.connected();
    const fence = (number: number) => this.link.say({ kind: "fence", number });
    this.children = new Children(client, fence, settings.logger);
    this.runner = new Runner(routes, this.link, {
      concurrency: settings.concurrency,
      cancelGrace: settings.cancelGrace,
      logger: settings.logger,
      middleware,
      state,
      health: this.health,
      codec: settings.codec,
      tracing: settings.tracing,
      client,
      noted: (isFailure) => this.failures?.note(isFailure),
      ended: () => {
        if (this.drain.stage !== Stage.WORKING) this.step();
      },
      waitFor: (context, outcome) => {
        void this.children.push(this.runner, context, outcome).then(() => this.step());
      },
    });
  }

  /** Settles when the server has answered for the first time, or no stream is possible. */
  get whenOpened(): Promise<void> {
    return this.opened.promise;
  }

  /** Settles when the worker has stopped. */
  get whenFinished(): Promise<void> {
    return this.finished.promise;
  }

  /** Requests the stop, or its next stage. */
  stop(): void {
    this.drain.requestStop();
    this.step();
  }

  /** What the worker has done and is doing. */
  get stats(): WorkerStats {
    const running = this.runner.runningJobs.length;
    const isPaused = this.failures?.isPaused ?? false;
    return statsOf(new BigInt64Array(this.counters), running, this.runner.stuck.size, isPaused);
  }

  private connected(): Client {
    const { codec, tracing } = this.parts.settings;
    const own = { tracing: tracing !== "off", ...(codec && { codec }) };
    this.client ??= new Client({ ...this.parts.address, ...own });
    return this.client;
  }

  private handle(message: FromStream): void {
    const { logger } = this.parts.settings;
    if (message.kind === "delivered") this.runner.take(message);
    else if (message.kind === "fence") this.children.handleFence(message.number);
    else if (message.kind === "log") logger[message.level](message.text);
    else if (message.kind === "resumed") this.runner.resume();
    else if (message.kind === "listening") this.healthPort = message.port;
    else if (message.kind === "token") void this.tellToken(message.number);
    else if (message.kind === "opened") this.opened.resolve();
    else if (message.kind === "failed") this.fail(message);
    else this.handleThreadEnd();
  }

  /** Calls the function that returns the token of now, for the thread of the stream. */
  private async tellToken(number: number): Promise<void> {
    const { token } = this.parts.address;
    if (typeof token !== "function") return;
    const answer = await tokenOf(token, TOKEN_MAX).then(
      (found) => ({ number, token: found }),
      (error: Error) => ({ number, error: error.message }),
    );
    this.link.say({ kind: "token", answer });
  }

  private fail({ name, message, facts }: Extract<FromStream, { kind: "failed" }>): void {
    const Kind = (errors as Record<string, unknown>)[name] ?? errors.Internal;
    this.failure = new (Kind as typeof errors.JoblineError)(message, facts);
    this.parts.settings.logger.error(`the worker stops: ${message}`);
  }

  private handleThreadEnd(): void {
    if (this.isThreadEnded) return;
    this.isThreadEnded = true;
    if (this.drain.stage === Stage.WORKING) this.drain.requestStop();
    this.step();
  }

  /** Takes a stopping worker through the stages of its stop. */
  private step(): void {
    if (this.isStepping) return; // a handler that ends while it is aborted
    this.isStepping = true;
    for (;;) {
      const isIdle = this.runner.running.size === 0 && this.children.pending.size === 0;
      const stage = this.drain.step(performance.now(), isIdle, this.isThreadEnded);
      if (stage === undefined) break;
      if (stage === Stage.FINISHING) this.finish();
      else if (stage === Stage.CANCELLING) this.cancel();
      else if (stage === Stage.RELEASING) this.release();
      else if (stage === Stage.STOPPED) this.end();
    }
    this.isStepping = false;
    clearTimeout(this.timer);
    const { deadline } = this.drain;
    if (deadline !== undefined && this.drain.stage !== Stage.STOPPED) {
      const pause = Math.min(Math.max(1, Math.ceil(deadline - performance.now())), TIMER_MAX);
      this.timer = setTimeout(() => this.step(), pause);
    }
  }

  /** Jobs that have begun: their handlers run, or their children are being pushed. */
  private get begun(): LeasedJob[] {
    return [...this.runner.runningJobs, ...[...this.children.pending].map((context) => context.job)];
  }

  private pause(isPaused: boolean): void {
    const { begun } = this;
    if (isPaused) this.runner.pause(begun); // until "resumed": what comes before that is released
    this.link.say(isPaused ? { kind: "pause", keep: begun.map(leaseOf) } : { kind: "resume" });
  }

  /** Starts nothing more, releases jobs that have not started, and sets the deadline of the others. */
  private finish(): void {
    const { settings } = this.parts;
    const { size } = this.runner.running;
    settings.logger.info(
      size > 0
        ? `stopping: ${handlers(size)} may finish, for up to ${settings.softStop / 1_000} s`
        : "stopping",
    );
    this.runner.close();
    this.runner.setDeadline(new Date(Date.now() + settings.softStop));
    this.failures?.close();
    this.link.say({ kind: "drain", keep: this.begun.map(leaseOf) });
  }

  private cancel(): void {
    const { size } = this.runner.running;
    if (size > 0) this.parts.settings.logger.info(`stopping: ${handlers(size)} should end now`);
    this.children.close();
    this.runner.stopAll();
  }

  /** Releases what is still held; what may run only once and has begun is left to the server. */
  private release(): void {
    const left = this.runner.runningJobs;
    if (left.length > 0) {
      this.parts.settings.logger.error(`handlers that did not stop in time, given back: ${left.join(", ")}`);
    }
    const once = left.filter((job) => job.isOnce);
    this.link.say({ kind: "release", leave: once.map(leaseOf) });
  }

  private end(): void {
    this.link.say({ kind: "stop" });
    this.link.close();
    this.health?.close();
    void this.client?.close(); // what handlers have not waited for may take its time
    this.parts.settings.logger.info("stopped");
    const closed = this.failure ?? new errors.ClientClosed("the worker has stopped");
    this.opened.reject(closed);
    if (this.failure) this.finished.reject(this.failure);
    else this.finished.resolve();
  }
}

function handlers(size: number): string {
  return size === 1 ? "1 handler" : `${size} handlers`;
}

function healthOf(settings: Settings, routes: Routes): HealthSettings | undefined {
  const { healthPort: port, healthHost: host, concurrency: slots } = settings;
  if (port === undefined) return undefined;
  const names = labelsOf(routes.all.map((route) => route.job.name));
  return { host, port, slots, names, cells: cellsFor(names.length) };
}

function streamAddress({ target, tls, metadata, token }: ResolvedAddress): StreamAddress {
  const asksForToken = typeof token === "function";
  return { target, tls, metadata, asksForToken, token: asksForToken ? undefined : token };
}

interface Resolvers<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** As `Promise.withResolvers`, which Node has from 22 on. */
function withResolvers<T>(): Resolvers<T> {
  let resolve: Resolvers<T>["resolve"] = () => undefined;
  let reject: Resolvers<T>["reject"] = () => undefined;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
