import { AssertionError } from "node:assert";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Client } from "../client.js";
import { type Duration, dateOf, durationMessage, timestampMessage } from "../duration.js";
import { FailedPrecondition, InvalidArgument, Unavailable } from "../errors.js";
import { refuseNoFunction } from "../given.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import type { CallOptions, Stub } from "../services.js";
import { skip } from "../skipped_time.js";
import type { Job } from "../v1/job_pb.js";
import { TestService as Service, type TestService } from "../v1/test_service_pb.js";
import type { Logger } from "../worker/logger.js";
import type { Handler } from "../worker/routes.js";
import type { WorkerOptions } from "../worker/settings.js";
import { Worker } from "../worker/worker.js";
import {
  type Conditions,
  conditionsOf,
  filterOf,
  hasPayload,
  type PushedConditions,
  type StateName,
  type What,
} from "./conditions.js";
import { SeenJob } from "./seen_job.js";
import { described, SHOWN_OF_MANY, shown } from "./shown.js";
import { OneJob, type WorkOneOptions } from "./work_one.js";

/** Calls of the test service take as long as the server lets them. */
const PATIENT: CallOptions = { timeout: 3_600_000 };
/** Jobs of a page. */
const PAGE_MAX = 1_000;
/** Failed attempts are what many tests are about: they are no lines of a test's output. */
const SILENT: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Adds the handlers of a program to a worker. */
export type AddHandlers = (worker: Worker) => unknown;

interface Parts {
  readonly address: string;
  readonly codec: PayloadCodec | undefined;
  /** Settles when the process of the server ends. */
  readonly whenEnded: Promise<void>;
  /** Called at the end of the test. */
  giveBack(): void;
}

/** A server in memory for one test, whose clock is moved by hand. `await using` ends it. */
export class TestJobline implements AsyncDisposable {
  /** HOST:PORT of the server; JOBLINE_SERVER has it, too, until the end of the test. */
  readonly address: string;
  /** A client of the server, closed with the test. */
  readonly client: Client;
  private readonly service: Stub<typeof TestService>;
  private readonly workers = new Set<Worker>();
  private readonly serverBefore = process.env.JOBLINE_SERVER;
  private time = new Date(0);
  private isClosed = false;

  private constructor(private readonly parts: Parts) {
    const { address, codec } = parts;
    this.address = address;
    this.client = new Client({ target: address, ...(codec && { codec }) });
    this.service = this.client.admin.service(Service);
    process.env.JOBLINE_SERVER = address;
  }

  /** Empties a server for a test. */
  static async begin(parts: Parts, start: Date | undefined): Promise<TestJobline> {
    const request = start ? { start: timestampMessage(start, "start") } : {};
    const jobline = new TestJobline(parts);
    try {
      const reset = jobline.service.reset(request, PATIENT);
      // A process that has just been killed may seem to live: its clients would look for it for seconds.
      const ended = parts.whenEnded.then(() => Promise.reject(new Unavailable("the server has ended")));
      jobline.setTime((await Promise.race([reset, ended])).now);
    } catch (error) {
      await jobline.leave();
      throw error;
    }
    return jobline;
  }

  /** The time of the server, which `advance` alone moves. */
  get now(): Date {
    return this.time;
  }

  /**
   * Moves the clock by `"1h"`, or milliseconds; returns the time then. All that comes due on the way is done at
   * its moment: delays, retries, timeouts, leases, schedules, limits, retention. Workers that are connected may
   * take `workTimeout` of real time (1 s) for what they get at one moment; they keep their leases all the while.
   */
  async advance(duration: Duration, options: { workTimeout?: Duration } = {}): Promise<Date> {
    return this.move({ case: "duration", value: durationMessage(duration, "duration") }, options);
  }

  /** Moves the clock to a moment, which is not over, as `advance` does. A text is read as `new Date(text)`. */
  async advanceTo(moment: Date | string, options: { workTimeout?: Duration } = {}): Promise<Date> {
    const value = timestampMessage(new Date(moment), "moment");
    return this.move({ case: "until", value }, options);
  }

  /**
   * Runs handlers until nothing is left that they can do now: those that `add` gives to a worker; without it,
   * those of the workers that the test has started. It moves no clock, so what is to be retried later waits.
   * Throws AssertionError after `timeout` (10 s of real time), with what is left, and why.
   */
  async drain(add?: AddHandlers, options: { timeout?: Duration } = {}): Promise<void> {
    if (add) await this.working(add, () => this.drained("", options.timeout));
    else await this.drained("", options.timeout);
  }

  /** Returns the jobs that the server has, waiting, at work or ended, by id. */
  async pushed(what?: What, conditions: PushedConditions = {}): Promise<SeenJob[]> {
    return this.found(conditionsOf(what, conditions), Number.POSITIVE_INFINITY);
  }

  /**
   * Returns the first job that matches, as `pushed` finds it. Throws AssertionError, with the jobs that there
   * are, if there is none; with `times`, if there are not as many.
   */
  async assertPushed(what?: What, conditions: PushedConditions & { times?: number } = {}): Promise<SeenJob> {
    const { times, ...rest } = conditions;
    if (times !== undefined && !(times >= 1)) {
      throw new InvalidArgument("times: is 1 or more; refutePushed says that there is none");
    }
    const wanted = conditionsOf(what, rest);
    const found = await this.found(wanted, times === undefined ? 1 : times + 1);
    const [first] = found;
    if (first && (times === undefined || times === found.length)) return first;
    const isMore = times !== undefined && found.length > times;
    const count = isMore ? `${times + 1} jobs match, or more` : `${found.length} jobs match`;
    const said = times === undefined ? "no job matches" : `${count}, not ${times}`;
    const there = shown(found.length > 0 ? found : await this.found({}, SHOWN_OF_MANY));
    throw failure(`${said}: ${described(wanted)}\nthere are:\n${there}`, this.assertPushed);
  }

  /** Throws AssertionError if a job matches, as `pushed` finds it. */
  async refutePushed(what?: What, conditions: PushedConditions = {}): Promise<void> {
    const wanted = conditionsOf(what, conditions);
    const found = await this.found(wanted, SHOWN_OF_MANY);
    if (found.length === 0) return;
    throw failure(`jobs match: ${described(wanted)}\n${shown(found)}`, this.refutePushed);
  }

  /**
   * Pushes one job, has it handled once by the real engine, and returns it as it is then: `state`, `result`,
   * `error`, `runAt` of its retry, `checkpoint`. It is in a queue of its own, so that nothing else is handled.
   */
  async workOne<P, R>(
    handler: Handler<P, R, undefined>,
    payload: P,
    options: WorkOneOptions<P, R> = {},
  ): Promise<SeenJob> {
    const one = await OneJob.prepare(this.client, payload, options, () => this.advance(0));
    const add = (worker: Worker) => worker.handle(one.kind, handler);
    await this.working(add, () => this.drained(one.kind.queue, "60s"), { concurrency: 1, window: 1 });
    return one.seen();
  }

  /**
   * Returns jobs once `count` of them match (1), for workers that the test has started. Throws AssertionError
   * after `timeout` (5 s of real time), with the states in which they are instead.
   */
  async waitFor(
    what: What | Conditions,
    state?: StateName | readonly StateName[],
    options: { count?: number; timeout?: Duration } = {},
  ): Promise<SeenJob[]> {
    const isPlain = typeof what === "object" && !("codec" in what);
    const conditions = isPlain ? conditionsOf(undefined, what) : conditionsOf(what as What, {});
    const filter = filterOf(state === undefined ? conditions : { ...conditions, state });
    const timeout = durationMessage(options.timeout ?? "5s", "timeout");
    const request = { filter, count: options.count ?? 1, timeout };
    return reached(async () => {
      const { jobs } = await this.service.waitFor(request, PATIENT);
      return jobs.map((job) => this.seen(job));
    }, this.waitFor);
  }

  /** Starts a worker with these handlers, which is stopped at the end of the test at the latest. */
  async startWorker(add: AddHandlers, options: WorkerOptions<undefined> = {}): Promise<Worker> {
    refuseNoFunction("add", add);
    const { address: target, codec } = this.parts;
    const own = { target, logger: SILENT, softStop: "1s", ...(codec && { codec }) };
    const worker = new Worker({ ...own, ...options });
    add(worker);
    await worker.start();
    this.workers.add(worker);
    return worker;
  }

  /** Stops the workers of the test, closes its client, and leaves the server to the next test. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    await Promise.all([...this.workers].map((worker) => worker.stop()));
    await this.leave();
    this.parts.giveBack();
  }

  private async leave(): Promise<void> {
    await this.client.close();
    if (process.env.JOBLINE_SERVER === this.address) {
      if (this.serverBefore === undefined) delete process.env.JOBLINE_SERVER;
      else process.env.JOBLINE_SERVER = this.serverBefore;
    }
  }

  private async working(add: AddHandlers, call: () => Promise<void>, options: WorkerOptions<undefined> = {}) {
    const worker = await this.startWorker(add, options);
    try {
      await call();
    } finally {
      this.workers.delete(worker);
      await worker.stop();
    }
  }

  /** Returns jobs by id, at most so many: a server may have a million that match. */
  private async found(wanted: PushedConditions, most: number): Promise<SeenJob[]> {
    const filter = filterOf(wanted);
    const isByPayload = "payload" in wanted || "payloadContains" in wanted; // which the server does not look at
    const pageSize = isByPayload ? PAGE_MAX : Math.min(most, PAGE_MAX);
    const found: SeenJob[] = [];
    for (let pageToken = ""; ; ) {
      const page = await this.client.admin.jobs.listJobs({
        filter,
        pageToken,
        pageSize,
        includePayloads: true,
      });
      found.push(...page.jobs.map((job) => this.seen(job)).filter((job) => hasPayload(job, wanted)));
      if (!page.nextPageToken || found.length >= most) return found.slice(0, most);
      pageToken = page.nextPageToken;
    }
  }

  private seen(job: Job): SeenJob {
    return new SeenJob(job, this.parts.codec);
  }

  private async drained(queue: string, timeout: Duration = "10s"): Promise<void> {
    const request = { queue, timeout: durationMessage(timeout, "timeout") };
    await reached(() => this.service.drain(request, PATIENT), this.drain);
  }

  private async move(
    target:
      | { case: "duration"; value: ReturnType<typeof durationMessage> }
      | { case: "until"; value: Timestamp },
    { workTimeout = "1s" }: { workTimeout?: Duration },
  ): Promise<Date> {
    const request = { target, workTimeout: durationMessage(workTimeout, "workTimeout") };
    const before = this.time.getTime();
    const now = this.setTime((await this.service.advance(request, PATIENT)).now);
    // Clients of this program wait by their own clock, which nobody moves: at this server so much of it is over.
    if (now.getTime() > before) skip(this.address, now.getTime() - before);
    return now;
  }

  private setTime(now: Timestamp | undefined): Date {
    this.time = dateOf(now) ?? this.time;
    return this.time;
  }
}

/** Returns what a call returns; what it did not reach in time fails the test. */
async function reached<T>(call: () => Promise<T>, caller: (...given: never[]) => unknown): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof FailedPrecondition && error.reason === "NOT_REACHED")
      throw failure(error.message, caller);
    throw error;
  }
}

function failure(message: string, stackStartFn: (...given: never[]) => unknown): AssertionError {
  return new AssertionError({ message, stackStartFn });
}
