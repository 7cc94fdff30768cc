import type { Client, PushAndWait, PushCall } from "./client.js";
import { InvalidArgument } from "./errors.js";
import { refuseNoText } from "./given.js";
import { defineJob, type JobType, jobTypeOf } from "./job_type.js";
import type { Pushed } from "./push/answers.js";

/**
 * One entity: its kind is a queue, its key a group, so its jobs run one at a time and in the order of their
 * pushes. The name of a job is what the entity is asked to do.
 */
export class EntityRef {
  /** Refers to an entity. Throws InvalidArgument for no kind or key. */
  constructor(
    private readonly client: Client,
    /** The kind, which is the queue. */
    readonly kind: string,
    /** Which one, ≤ 256 characters. */
    readonly key: string,
  ) {
    refuseNoText("kind", kind);
    refuseNoText("key", key);
  }

  /** Pushes a job of this entity: a declared one, or one by its name. */
  async push<P>(
    job: JobType<P, unknown> | string,
    payload: NoInfer<P>,
    options: Omit<PushCall, "group"> = {},
  ): Promise<Pushed> {
    return this.client.push(this.jobOf(job), payload, { sticky: true, ...options, group: this.key });
  }

  /** Pushes a job of this entity and returns its result, as `Client.pushAndWait` does. */
  async pushAndWait<P, R>(
    job: JobType<P, R> | string,
    payload: NoInfer<P>,
    options: Omit<PushAndWait, "group"> = {},
  ): Promise<R> {
    return this.client.pushAndWait(this.jobOf(job), payload, { sticky: true, ...options, group: this.key });
  }

  private jobOf<P, R>(job: JobType<P, R> | string): JobType<P, R> {
    if (typeof job === "string") return defineJob<P, R>({ queue: this.kind, name: job });
    if (jobTypeOf(job).queue !== this.kind) {
      throw new InvalidArgument(`job: is one of queue ${job.queue}, and the entity's is ${this.kind}`);
    }
    return job;
  }
}
