import { decodeJson } from "../codec.js";
import { dateOf } from "../duration.js";
import type { EnumName } from "../options.js";
import { nameOf } from "../push/answers.js";
import type { PayloadCodec } from "../sealing/payload_codec.js";
import { type Job, type JobError, type JobOptions, JobState } from "../v1/job_pb.js";

/** A job as the server has it, for assertions. */
export class SeenJob {
  /** Made by the kit. */
  constructor(
    /** The message, with everything else that the server says of it. */
    readonly message: Job,
    private readonly codec?: PayloadCodec,
  ) {}

  /** The job's id. */
  get id(): bigint {
    return this.message.id;
  }

  /** Its queue. */
  get queue(): string {
    return this.message.queue;
  }

  /** The kind of work, "" without a name. */
  get name(): string {
    return this.message.options?.name ?? "";
  }

  /** "scheduled", "ready", "active", "completed", "dead" and so on. */
  get state(): EnumName<typeof JobState> {
    return nameOf(JobState, this.message.state);
  }

  /** What it was pushed with. */
  get options(): JobOptions | undefined {
    return this.message.options;
  }

  /** How many attempts have failed. */
  get failed(): number {
    return this.message.attempts;
  }

  /** Leases that were lost. */
  get stalls(): number {
    return this.message.stalls;
  }

  /** The error of the last attempt that has failed. */
  get error(): JobError | undefined {
    return this.message.error;
  }

  /** When it is, or was, to run. */
  get runAt(): Date | undefined {
    return dateOf(this.message.runAt);
  }

  /** Its payload: the value of JSON, or bytes if it is none. */
  get payload(): unknown {
    return this.opened(this.message.payload);
  }

  /** Its result, likewise; undefined without one. */
  get result(): unknown {
    return this.opened(this.message.result);
  }

  /** Its checkpoint, likewise; undefined without one. */
  get checkpoint(): unknown {
    return this.opened(this.message.checkpoint);
  }

  private opened(data: Uint8Array): unknown {
    return plainOf(this.codec ? this.codec.open(data).data : data);
  }
}

/** Returns the value of JSON, undefined for no bytes, and bytes that are no JSON as they are. */
export function plainOf(data: Uint8Array): unknown {
  try {
    return decodeJson(data);
  } catch {
    return new Uint8Array(data); // and no Buffer, which equals no Uint8Array
  }
}
