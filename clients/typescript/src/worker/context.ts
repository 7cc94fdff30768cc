import type { PushCall } from "../client.js";
import { cutText, decodeJson, encode, JSON_TYPE } from "../codec.js";
import { InvalidArgument } from "../errors.js";
import type { JobType } from "../job_type.js";
import { type EnumName, enumNumber } from "../options.js";
import type { Pushed } from "../push/answers.js";
import { opened, type PayloadCodec } from "../sealing/payload_codec.js";
import type { LogEntry } from "../stream/log_lines.js";
import type { Report } from "../stream/reports.js";
import { isA } from "../thrown.js";
import type { FlowNode } from "../v1/flow_service_pb.js";
import { LogLevel } from "../v1/job_pb.js";
import type { LeasedJob } from "./leased.js";
import { type CancelReason, Stopped } from "./outcomes.js";

const CHECKPOINT_BYTES_MAX = 64 << 10;
const PIECE_BYTES_MAX = 64 << 10;
const MESSAGE_BYTES_MAX = 4 << 10;
const LINE_BYTES_MAX = 16 << 10;

/** What a context needs of its worker. */
export interface ContextHost {
  /** What opens payloads and seals results; undefined for tests, and without one. */
  readonly codec?: PayloadCodec | undefined;
  /** Sends a report of a job, unless its lease is lost. */
  report(job: LeasedJob, report: Report): void;
  /** Sends a line for the log of a job. */
  log(job: LeasedJob, entry: LogEntry): void;
  /** Pushes a job. */
  push<P>(job: JobType<P, unknown> | string, payload: NoInfer<P>, options: PushCall): Promise<Pushed>;
  /** Returns the children of a job. */
  children(id: bigint): Promise<FlowNode[]>;
}

/** One delivery of one job, for its handler. */
export class Context<S = unknown> {
  private controller: AbortController | undefined;
  private spawned = 0;
  private saved: Uint8Array | undefined;
  private finishedPhases = 0;
  private keyId = "";
  /** Why the handler should stop; undefined while it should go on. */
  cancelReason: CancelReason | undefined;
  /** When the signal fires at the latest: by the job's `attemptTimeout`, or because the worker stops. */
  deadline: Date | undefined;
  /** Called once, when the handler is asked to stop. */
  onCancel: (() => void) | undefined;

  /** Made by the worker, and by tests of handlers. */
  constructor(
    /** Everything that the server sent. */
    readonly job: LeasedJob,
    private readonly host: ContextHost,
    /** What the worker's `state` option has made. */
    readonly state: S,
  ) {}

  /** The job's id. */
  get id(): bigint {
    return this.job.id;
  }

  /** The lease's counter. It only grows, so it serves as a fencing token downstream. */
  get delivery(): bigint {
    return this.job.delivery;
  }

  /** Number of this attempt, from 1; a job that was released or lost has the same again. */
  get attempt(): number {
    return this.job.attempt;
  }

  /** Why it was leased: "first", "retry", "stalled", "released", "resumed", "children_ended". */
  get reason(): LeasedJob["reason"] {
    return this.job.reason;
  }

  /** The job's queue. */
  get queue(): string {
    return this.job.queue;
  }

  /** The kind of work. */
  get name(): string {
    return this.job.name;
  }

  /** The job's group, "" without one: no other job of it runs meanwhile. */
  get group(): string {
    return this.job.group;
  }

  /** The headers it was pushed with. */
  get headers(): Record<string, string> {
    return this.job.headers;
  }

  /** Its idempotency key, or "". */
  get jobKey(): string {
    return this.job.jobKey;
  }

  /**
   * Fires when the handler should stop: the job was cancelled, its attempt took too long, its lease was lost, or
   * the worker stops. Its reason is a `Stopped`. Hand it on, to `fetch` for instance.
   */
  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.cancelReason) this.controller.abort(new Stopped(this.cancelReason));
    }
    return this.controller.signal;
  }

  /** Throws a `Stopped` if the handler should stop. A handler that just returns counts as done. */
  throwIfCancelled(): void {
    if (this.cancelReason) throw new Stopped(this.cancelReason);
  }

  /** Whether an error is that of a handler which stopped because it was asked to. */
  isStop(error: unknown): boolean {
    if (!this.cancelReason) return false;
    if (isA(error, Stopped)) return true;
    if (!isA(error, Error)) return false;
    try {
      return error.name === "AbortError" || isA(error.cause, Stopped);
    } catch {
      return false; // an error whose properties cannot be read
    }
  }

  /** Asks the handler to stop; the worker calls this, and so may tests. */
  cancel(reason: CancelReason): void {
    if (this.cancelReason) return;
    this.cancelReason = reason;
    this.onCancel?.();
    this.controller?.abort(new Stopped(reason));
  }

  /** The checkpoint that this attempt, or an earlier one, has saved, as JSON; undefined if there is none. */
  checkpoint<T = unknown>(): T | undefined {
    return decodeJson(this.checkpointBytes) as T | undefined;
  }

  /** The bytes of the checkpoint; empty if there is none. */
  get checkpointBytes(): Uint8Array {
    return this.saved ?? opened(this.host.codec, this.job.checkpoint).data;
  }

  /**
   * Saves bytes or a JSON value, ≤ 64 KiB, for a later attempt. Returns at once; it is sent with the next frame,
   * always before the job's outcome. Throws CodecError, and InvalidArgument for what is larger.
   */
  saveCheckpoint(value: unknown): void {
    const { data, isJson } = encode(value);
    const checkpoint = this.seal(data, isJson);
    if (checkpoint.length > CHECKPOINT_BYTES_MAX) {
      throw new InvalidArgument(`a checkpoint is at most 64 KiB, not ${checkpoint.length} bytes`);
    }
    this.saved = data;
    this.host.report(this.job, { checkpoint });
  }

  /**
   * Reports progress, 0 … 100, and what the handler is doing, cut at 4 KiB. Returns at once; reports that come
   * faster than they can be sent are merged. Throws InvalidArgument for another number.
   */
  progress(percent: number, message?: string): void {
    if (typeof percent !== "number" || !(percent >= 0 && percent <= 100)) {
      throw new InvalidArgument(`progress is a number 0 … 100, not ${String(percent)}`);
    }
    const text = message === undefined ? {} : { message: cutText(String(message), MESSAGE_BYTES_MAX) };
    this.host.report(this.job, { progress: percent, ...text });
  }

  /** Writes a line to the job's log, cut at 16 KiB. Returns at once. */
  log(text: string, level: EnumName<typeof LogLevel> = "info"): void {
    const number = enumNumber(LogLevel, level, "level");
    this.host.log(this.job, { atMs: Date.now(), level: number, text: cutText(String(text), LINE_BYTES_MAX) });
  }

  /**
   * Sends a piece of the result, bytes or a JSON value of ≤ 64 KiB, to those who wait with partials. Returns at
   * once; pieces keep their order, and come before the job's outcome.
   */
  partial(value: unknown): void {
    const { data, isJson } = encode(value);
    const partial = this.seal(data, isJson);
    if (partial.length === 0 || partial.length > PIECE_BYTES_MAX) {
      throw new InvalidArgument(`a piece has 1 byte … 64 KiB, not ${partial.length} bytes`);
    }
    this.host.report(this.job, { partial });
  }

  /** The name of the job's next phase; undefined if it has none, or all are finished. */
  get phase(): string | undefined {
    return this.job.options.phases[this.job.phaseResults.length + this.finishedPhases];
  }

  /** Finishes the next phase, by its name, with what it returned. Throws InvalidArgument for another one. */
  finishPhase(name: string, result?: unknown): void {
    if (name !== this.phase) {
      throw new InvalidArgument(`the next phase of ${this.job} is ${this.phase ?? "none"}, not ${name}`);
    }
    const { data, isJson } = encode(result);
    this.host.report(this.job, { phase: { name, result: this.seal(data, isJson) } });
    this.finishedPhases += 1;
  }

  /** The result of a phase that an earlier attempt has finished, as JSON; undefined if there is none. */
  phaseResult<T = unknown>(name: string): T | undefined {
    const result = this.job.phaseResults[this.job.options.phases.indexOf(name)];
    return result && (decodeJson(opened(this.host.codec, result).data) as T | undefined);
  }

  /** Opens the payload: results are sealed with its key. The worker calls this. */
  open(payload: Uint8Array): Uint8Array {
    const { data, keyId } = opened(this.host.codec, payload);
    this.keyId = keyId;
    return data;
  }

  /** Seals a result, if there is a codec; nothing stays nothing. The worker calls this. */
  seal(data: Uint8Array, isJson: boolean): Uint8Array {
    const { codec } = this.host;
    if (!codec || data.length === 0) return data;
    return codec.sealLike(data, isJson ? JSON_TYPE : "", this.keyId, this.group);
  }

  /**
   * Pushes another job, once for this job however often it is retried: the n-th call of each attempt has the
   * same key, unless `jobKey` says another. It is a member of this job's batch, if there is one. A handler that
   * should wait for what it pushes throws `WaitFor` instead.
   */
  async spawn<P>(
    job: JobType<P, unknown> | string,
    payload: NoInfer<P>,
    options: PushCall = {},
  ): Promise<Pushed> {
    this.spawned += 1;
    const { batchId } = this.job.options;
    const own = { jobKey: `spawn:${this.id}:${this.spawned}`, ...(batchId ? { batchId } : {}) };
    return this.host.push(job, payload, { ...own, ...options });
  }

  /** Returns the children of the job, with their results: those of its flow, then those it has waited for. */
  async children(): Promise<FlowNode[]> {
    return this.host.children(this.id);
  }
}
