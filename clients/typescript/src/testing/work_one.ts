import { create } from "@bufbuild/protobuf";
import type { Client } from "../client.js";
import { encode } from "../codec.js";
import { durationMessage } from "../duration.js";
import { InvalidArgument } from "../errors.js";
import { defineJob, type JobType } from "../job_type.js";
import type { PushOptions } from "../options.js";
import { JobErrorSchema, JobState } from "../v1/job_pb.js";
import { SeenJob } from "./seen_job.js";

/** Which delivery of a job is handled, and how the job is pushed. */
export interface WorkOneOptions<P, R> extends PushOptions {
  /** The declared job whose options, schema and codec it has; its queue is another one. */
  job?: JobType<P, R>;
  /** Which attempt is handled, from 1 (the default); those before it have failed. */
  attempt?: number;
  /** What an earlier attempt has saved: bytes, or what becomes JSON. */
  checkpoint?: unknown;
}

let number = 0;

/** A job in a queue of its own, brought to an attempt by hand. */
export class OneJob<P, R> {
  private constructor(
    private readonly client: Client,
    /** The declared job, in its own queue. */
    readonly kind: JobType<P, R>,
    private readonly id: bigint,
  ) {}

  /** Pushes the job, and brings it to its attempt; `settle` has done what is due. */
  static async prepare<P, R>(
    client: Client,
    payload: P,
    options: WorkOneOptions<P, R>,
    settle: () => Promise<unknown>,
  ): Promise<OneJob<P, R>> {
    const { job, attempt = 1, checkpoint, ...push } = options;
    if (!Number.isSafeInteger(attempt) || attempt < 1) {
      throw new InvalidArgument(`attempt: the first is 1, and this is ${attempt}`);
    }
    number += 1;
    const kind = { ...(job ?? defineJob<P, R>({ queue: "any" })), queue: `work-one-${number}` };
    const { id } = await client.push(kind, payload, push);
    const one = new OneJob(client, kind, id);
    await one.bringTo(attempt, checkpoint, settle);
    return one;
  }

  /** Returns the job as it is now. */
  async seen(): Promise<SeenJob> {
    const { job } = await this.client.admin.jobs.getJob({ job: { case: "id", value: this.id } });
    if (!job) throw new Error(`the server has no job ${this.id} any more: it was removed after its end`);
    return new SeenJob(job, this.client.codec);
  }

  private async bringTo(attempt: number, checkpoint: unknown, settle: () => Promise<unknown>): Promise<void> {
    const { raw, jobs } = this.client.admin;
    if ((await this.seen()).message.state === JobState.SCHEDULED) {
      await jobs.promoteJobs({ jobs: { ids: [this.id] } });
    }
    const plain = checkpoint === undefined ? undefined : encode(checkpoint).data;
    const saved = plain && (this.client.codec?.seal(plain) ?? plain);
    for (let before = 1; before < attempt; before += 1) {
      const lease = await this.lease(`attempt ${before}`);
      if (saved && before === attempt - 1) await raw.extend({ items: [{ ...lease, checkpoint: saved }] });
      const error = create(JobErrorSchema, { type: "Error", message: "an earlier attempt" });
      await raw.fail({ items: [{ ...lease, error, retryAfter: durationMessage(0, "retryAfter") }] });
      await settle();
    }
    if (saved && attempt === 1) {
      const lease = await this.lease("attempt 1");
      await raw.extend({ items: [{ ...lease, checkpoint: saved }] });
      await raw.release({ items: [lease] });
    }
    await this.refuseUnready(`attempt ${attempt}`);
  }

  private async lease(what: string): Promise<{ id: bigint; delivery: bigint }> {
    await this.refuseUnready(what);
    const { jobs } = await this.client.admin.raw.pull({ queues: [{ queue: this.kind.queue, weight: 1 }] });
    const [leased] = jobs;
    if (!leased) throw new Error(`${what} cannot be made: the server hands the job out to nobody`);
    return { id: leased.id, delivery: leased.delivery };
  }

  private async refuseUnready(what: string): Promise<void> {
    const { state, message } = await this.seen();
    if (state === "ready") return;
    const why = state === "dead" ? `it has had ${message.history.length} attempts` : "it waits for something";
    throw new Error(`${what} cannot be made: the job is ${state}; ${why}`);
  }
}
