import { type Duration, milliseconds } from "../duration.js";
import { InvalidArgument } from "../errors.js";
import { refuseNoFunction } from "../given.js";
import type { JobType } from "../job_type.js";
import { refuseOthers } from "../known_options.js";
import type { Context } from "./context.js";

/** Handles one job. What it returns is the result, or an outcome; an error fails the attempt, as if thrown. */
export type Handler<P, R, S> = (payload: P, context: Context<S>) => Promise<R | Error> | R | Error;

/** One job of a batch: its payload and its context. */
export interface BatchItem<P, S> {
  /** The payload. */
  readonly payload: P;
  /** The context; its `id` is the key of the answer. */
  readonly context: Context<S>;
}

/** The answers of a batch handler: one for each job in order, or by id. An error or outcome is an answer. */
export type BatchAnswers<R> = readonly (R | Error)[] | ReadonlyMap<bigint, R | Error>;

/** Handles many jobs at once. A job without an answer has failed; it is never assumed done. */
export type BatchHandler<P, R, S> = (
  items: readonly BatchItem<P, S>[],
) => Promise<BatchAnswers<R>> | BatchAnswers<R>;

/** How jobs gather for a batch handler. */
export interface BatchOptions {
  /** How many make a batch. */
  size: number;
  /** How long the first one waits for others; default 50 ms. */
  wait?: Duration;
}

/** A handler and the jobs it takes. */
export interface Route {
  readonly job: JobType<unknown, unknown>;
  readonly call: ((payload: unknown, context: Context) => unknown) | undefined;
  readonly batch: ((items: readonly BatchItem<unknown, unknown>[]) => unknown) | undefined;
  readonly size: number;
  /** Milliseconds that the first job of a batch waits. */
  readonly wait: number;
}

/** The handlers of a worker, by queue and name. */
export class Routes {
  private readonly routes = new Map<string, Map<string, Route>>();

  /** Adds a handler. Throws InvalidArgument for no function, and if its queue and name have one already. */
  add<P, R, S>(job: JobType<P, R>, handler: Handler<P, R, S>): void {
    refuseNoFunction("handler", handler);
    this.put({
      job: job as JobType<unknown, unknown>,
      call: handler as NonNullable<Route["call"]>,
      batch: undefined,
      size: 0,
      wait: 0,
    });
  }

  /** Adds a batch handler. Throws InvalidArgument for a size below 1. */
  addBatch<P, R, S>(job: JobType<P, R>, options: BatchOptions, handler: BatchHandler<P, R, S>): void {
    refuseOthers(options, { size: true, wait: true });
    refuseNoFunction("handler", handler);
    if (!Number.isSafeInteger(options.size) || options.size < 1) {
      throw new InvalidArgument(`size: is a whole number from 1, not ${options.size}`);
    }
    this.put({
      job: job as JobType<unknown, unknown>,
      call: undefined,
      batch: handler as NonNullable<Route["batch"]>,
      size: options.size,
      wait: milliseconds(options.wait ?? "50ms", "wait"),
    });
  }

  private put(route: Route): void {
    const { queue, name } = route.job;
    const known = this.routes.get(queue) ?? new Map<string, Route>();
    if (known.has(name)) {
      throw new InvalidArgument(
        `queue ${queue} has a handler ${name ? `for ${name}` : "without a name"} already`,
      );
    }
    known.set(name, route);
    this.routes.set(queue, known);
  }

  /** Returns the handler of a job, if there is one. */
  find(queue: string, name: string): Route | undefined {
    return this.routes.get(queue)?.get(name);
  }

  /** All handlers. */
  get all(): Route[] {
    return [...this.routes.values()].flatMap((routes) => [...routes.values()]);
  }

  /** The queues of all handlers. */
  get queues(): string[] {
    return [...this.routes.keys()];
  }
}
