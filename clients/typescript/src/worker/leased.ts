import { dateOf } from "../duration.js";
import type { EnumName } from "../options.js";
import { nameOf } from "../push/answers.js";
import {
  DeliveryMode,
  type JobOptions,
  type LeasedJob as LeasedJobMessage,
  type LeasedRun,
  LeaseReason,
} from "../v1/job_pb.js";

/** A job that is leased to this worker. `(id, delivery)` is the lease. */
export class LeasedJob {
  private constructor(
    /** The job's id. */
    readonly id: bigint,
    /** The lease's counter. It only grows, so it serves as a fencing token downstream. */
    readonly delivery: bigint,
    /** The job's queue. */
    readonly queue: string,
    /** What it was pushed with; the jobs of a run share theirs. */
    readonly options: JobOptions,
    /** Its payload as it is stored: sealed, if it was pushed with a codec. */
    readonly payload: Uint8Array,
    private readonly message: LeasedJobMessage | undefined,
    private readonly run: LeasedRun | undefined,
    private readonly index: number,
  ) {}

  /** Returns the job of a message. */
  static ofMessage(message: LeasedJobMessage): LeasedJob {
    const { id, delivery, queue, payload } = message;
    return new LeasedJob(id, delivery, queue, message.options ?? NO_OPTIONS, payload, message, undefined, 0);
  }

  /** Returns the jobs of a run, which share everything but id, payload, key, and headers of their own. */
  static ofRun(run: LeasedRun): LeasedJob[] {
    const { firstId, delivery, queue, options = NO_OPTIONS } = run;
    return run.payloads.map(
      (payload, index) =>
        new LeasedJob(firstId + BigInt(index), delivery, queue, options, payload, undefined, run, index),
    );
  }

  /** The kind of work. */
  get name(): string {
    return this.options.name;
  }

  /** Number of this attempt, from 1. */
  get attempt(): number {
    return this.message?.attempt ?? 1;
  }

  /** Why it was leased. */
  get reason(): EnumName<typeof LeaseReason> {
    return nameOf(LeaseReason, this.message?.reason ?? LeaseReason.FIRST);
  }

  /** What an earlier attempt left. */
  get checkpoint(): Uint8Array {
    return this.message?.checkpoint ?? EMPTY;
  }

  /** Its group, "" without one. */
  get group(): string {
    return this.message?.group ?? "";
  }

  /** Whether this worker had the last job of the group, too. */
  get continuesGroup(): boolean {
    return this.message?.continuesGroup ?? false;
  }

  /** Results of the phases that earlier attempts have finished. */
  get phaseResults(): readonly Uint8Array[] {
    return this.message?.phaseResults ?? [];
  }

  /** Its idempotency key, or "". */
  get jobKey(): string {
    return this.message?.jobKey ?? this.run?.jobKeys[this.index] ?? "";
  }

  /** The headers it was pushed with. */
  get headers(): Record<string, string> {
    const headers = { ...this.options.headers };
    for (const { key, values } of this.run?.headerColumns ?? []) {
      const own = values[this.index];
      if (own) headers[key] = own;
    }
    return headers;
  }

  /** When it was pushed. */
  get pushedAt(): Date | undefined {
    return dateOf(this.message?.pushedAt ?? this.run?.pushedAt);
  }

  /** Whether it may run only once. */
  get isOnce(): boolean {
    return this.options.delivery === DeliveryMode.ONCE;
  }

  /** How log lines name it. */
  toString(): string {
    return `job ${this.id} (${this.queue}${this.name ? `/${this.name}` : ""})`;
  }
}

const EMPTY = new Uint8Array();
const NO_OPTIONS = { name: "", headers: {}, phases: [] } as unknown as JobOptions;
