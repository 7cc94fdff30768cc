import { Admin } from "./admin.js";
import { BatchRef, type BatchSettings, createBatch } from "./batches.js";
import { ADDRESS_OPTIONS, type Address } from "./channel.js";
import { Connection } from "./connection.js";
import { type Duration, milliseconds } from "./duration.js";
import { EntityRef } from "./entity.js";
import { InvalidArgument } from "./errors.js";
import { type FlowJob, type FlowPushed, pushFlow } from "./flows.js";
import { refuseNoArray, refuseNoId, refuseNoObject, refuseWithout } from "./given.js";
import { resolved } from "./identity.js";
import { decodeResult, type JobType, jobTypeOf, type NewJob } from "./job_type.js";
import { refuseOthers } from "./known_options.js";
import type { PushOptions } from "./options.js";
import type { Pushed } from "./push/answers.js";
import { REPEAT_MAX } from "./push/calls.js";
import type { ManyOptions } from "./push/messages.js";
import type { PushMiddleware } from "./push/outgoing.js";
import { Producer } from "./push/producer.js";
import { type Schedule, type ScheduleSettings, schedule } from "./schedules.js";
import type { PayloadCodec } from "./sealing/payload_codec.js";
import { type JobEnd, resultOf, type WaitOptions, waitFor } from "./waiting.js";
import { SharedWaits } from "./waits/shared_waits.js";

/** Where a client's server is, and how much it may have under way. */
export interface ClientOptions extends Address {
  /** How long a call may take, retries of a push included; default 20 s. */
  timeout?: Duration;
  /** Pushes that may wait or fly at a time; one more is refused with BufferFull. Default 10,000. */
  bufferJobs?: number;
  /** Bytes of their payloads; default 64 MiB. */
  bufferBytes?: number;
  /** Seals payloads that are pushed, and opens results. */
  codec?: PayloadCodec;
  /**
   * Whether pushes are spans of OpenTelemetry, and carry their context in headers; default true, which does
   * nothing unless the program has `@opentelemetry/api` and has registered a tracer provider.
   */
  tracing?: boolean;
  /** Around each call that pushes, the first outermost. */
  middleware?: readonly PushMiddleware[];
}

const CLIENT_OPTIONS: Record<keyof Required<ClientOptions>, true> = {
  ...ADDRESS_OPTIONS,
  timeout: true,
  bufferJobs: true,
  bufferBytes: true,
  codec: true,
  tracing: true,
  middleware: true,
};

/** How one job is pushed, and when to give up before it is sent. */
export interface PushCall extends PushOptions {
  /** An abort before the push left withdraws it; afterwards it may be stored all the same. */
  signal?: AbortSignal;
}

/** How a job is pushed and waited for. */
export interface PushAndWait extends PushCall {
  /** How long to wait after the push, up to 1 h; default 60 s. */
  timeout?: Duration;
}

/**
 * Pushes jobs and waits for them. One client serves a whole program: concurrent pushes share calls.
 *
 * Ids of jobs and batches are `bigint`, here as in the generated stubs.
 */
export class Client implements AsyncDisposable {
  // Hidden, as whatever may have a token is: nobody shows one who looks at a client.
  readonly #connection: Connection;
  readonly #producer: Producer;
  readonly #waits: SharedWaits;
  /** The generated stubs of all services, by service: `client.admin.queues.getQueue({ queue })`. */
  readonly admin: Admin;

  /** What seals its payloads; `client.codec?.tag("email", "a@b.c")` is what to search for. */
  readonly codec: PayloadCodec | undefined;

  /** Makes a client; it connects at its first call. Throws InvalidArgument for a wrong setting. */
  constructor(options: ClientOptions | string = {}) {
    const given: ClientOptions = typeof options === "string" ? { target: options } : options;
    refuseOthers(given, CLIENT_OPTIONS);
    const { codec, middleware = [] } = given;
    if (codec !== undefined) refuseWithout("codec", "a PayloadCodec", codec, "sealJob", "open");
    refuseNoArray("middleware", "functions", middleware, (one) => typeof one === "function");
    const timeout = milliseconds(given.timeout ?? "20s", "timeout");
    this.#connection = new Connection(resolved(given), timeout);
    this.#waits = new SharedWaits(this.#connection);
    this.codec = codec;
    this.admin = new Admin(this.#connection);
    const limits = {
      jobs: atLeastOne("bufferJobs", given.bufferJobs ?? 10_000),
      payloadBytes: atLeastOne("bufferBytes", given.bufferBytes ?? 64 << 20),
      batchJobs: 1_000,
      batchBytes: 4 << 20,
      flights: 32,
      giveUpAfter: Math.min(timeout, REPEAT_MAX),
    };
    this.#producer = new Producer(this.#connection, limits, middleware, this.codec, given.tracing ?? true);
  }

  /**
   * Pushes one job of a queue, or of a declared kind, and returns when the ack level is reached.
   *
   * Pushes made at the same time share one call, and keep their order within a queue and a set of options. An
   * answer that is lost is asked for again, and nothing is stored twice.
   *
   * Throws BufferFull, InvalidArgument, IdempotencyMismatch, UniqueKeyHeld, QueueFull and other refusals
   * (nothing was stored), or OutcomeUnknown when the client's timeout passed without a definite answer.
   */
  async push<P>(job: JobType<P, unknown> | string, payload: NoInfer<P>, options?: PushCall): Promise<Pushed> {
    return this.#producer.push(job, payload, options);
  }

  /**
   * Pushes many jobs in one call and returns what became of each, in order: payloads, or `NewJob`s with
   * something of their own; ≤ 1,000, or ≤ 10,000 if all are payloads; ≤ 16 MiB. All or none are stored,
   * unless `atomic` is false.
   */
  async pushMany<P>(
    job: JobType<P, unknown> | string,
    jobs: readonly (NoInfer<P> | NewJob<NoInfer<P>>)[],
    options: ManyOptions = {},
  ): Promise<Pushed[]> {
    return this.#producer.pushMany(job, jobs, options);
  }

  /**
   * Pushes a job and returns its result. Throws WaitTimeout (the job goes on; the error has its `id`), JobDead,
   * JobCancelled, JobExpired, JobNotFound (it completed and was not kept), and the errors of `push`.
   */
  async pushAndWait<P, R>(
    job: JobType<P, R> | string,
    payload: NoInfer<P>,
    options: PushAndWait = {},
  ): Promise<R> {
    refuseNoObject("options", options);
    const { timeout, ...push } = options;
    const type = jobTypeOf<P, R>(job);
    const { id } = await this.push(type, payload, push);
    const wait = { ...(timeout !== undefined && { timeout }), ...(push.signal && { signal: push.signal }) };
    return this.result(type, id, wait);
  }

  /** Waits for a job that was pushed before, and returns its result, as `pushAndWait` does. */
  async result<R>(job: JobType<unknown, R> | string, id: bigint, options: WaitOptions = {}): Promise<R> {
    const type = jobTypeOf(job as JobType<unknown, R>);
    const end = await this.wait(id, options);
    return resultOf(end, (data) => decodeResult(type, data)) as R;
  }

  /** Waits until a job has ended, however it did. Throws WaitTimeout. */
  async wait(id: bigint, options: WaitOptions = {}): Promise<JobEnd> {
    refuseNoId("id", id);
    for await (const end of this.waitAll([id], options)) return end;
    throw new InvalidArgument("there is no job to wait for");
  }

  /**
   * Yields how jobs end, up to 10,000 of them, as each does. Throws WaitTimeout, with the id of one that has not
   * ended, and TooLarge for more.
   */
  waitAll(ids: Iterable<bigint>, options: WaitOptions = {}): AsyncGenerator<JobEnd> {
    return waitFor(this.#connection, this.#waits, ids, options, this.codec);
  }

  /** Returns a reference to one entity, whose jobs run one at a time and in order. Nothing is sent. */
  entity(kind: string, key: string): EntityRef {
    return new EntityRef(this, kind, key);
  }

  /** Creates a batch: jobs that are pushed through it end together. */
  batch(settings: BatchSettings = {}): Promise<BatchRef> {
    return createBatch(this, settings);
  }

  /** Returns a reference to a batch that was created before. Nothing is sent. */
  batchOf(id: bigint): BatchRef {
    refuseNoId("id", id);
    return new BatchRef(this, id);
  }

  /** Pushes jobs that wait for their children, all or none. Returns the id of the first one, and all ids. */
  flow(...jobs: FlowJob[]): Promise<FlowPushed> {
    return pushFlow(this, jobs);
  }

  /** Creates a schedule, or changes the one of this name, which keeps its counts. */
  schedule<P>(
    name: string,
    job: JobType<P, unknown> | string,
    payload: NoInfer<P>,
    settings: ScheduleSettings,
  ): Promise<Schedule> {
    return schedule(this, name, job, payload, settings);
  }

  /** Refuses new pushes, waits for the answers of the others, ends waits, and closes the channel. */
  async close(): Promise<void> {
    await this.#producer.close();
    this.#waits.close();
    this.#connection.close();
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function atLeastOne(field: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgument(`${field}: is a whole number from 1, not ${value}`, {
      fields: { [field]: "is out of range" },
    });
  }
  return value;
}
