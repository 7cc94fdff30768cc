import type { Connection } from "../connection.js";
import { InvalidArgument } from "../errors.js";
import { refuseNoObject } from "../given.js";
import { type JobType, jobTypeOf, type NewJob } from "../job_type.js";
import type { PushOptions } from "../options.js";
import { type PayloadCodec, sealedJob } from "../sealing/payload_codec.js";
import { isTraced, tracedPush } from "../tracing.js";
import type { Pushed } from "./answers.js";
import type { BatchLimits } from "./batcher.js";
import { fitting, type ManyOptions, requestOfMany, singlePush } from "./messages.js";
import {
  type Outgoing,
  outgoingOf,
  outgoingOfMany,
  type PushMiddleware,
  type PushNext,
  pushOf,
  requestOfOutgoing,
  through,
} from "./outgoing.js";
import { Pusher } from "./pusher.js";

/** What pushes jobs for a client: through its middleware and its codec, if there are any. */
export class Producer {
  private readonly pusher: Pusher;

  /** Makes a producer that sends over a connection. */
  constructor(
    private readonly connection: Connection,
    limits: BatchLimits,
    private readonly middleware: readonly PushMiddleware[],
    private readonly codec: PayloadCodec | undefined,
    private readonly tracing: boolean,
  ) {
    this.pusher = new Pusher((request) => connection.tryPush(request), limits, connection.calls);
  }

  /** Pushes one job. An abort before it left withdraws it; afterwards it may be stored. */
  async push<P>(
    job: JobType<P, unknown> | string,
    payload: P,
    options?: PushOptions & { signal?: AbortSignal },
  ): Promise<Pushed> {
    const type = jobTypeOf(job);
    if (this.isPlain) {
      if (options === undefined) return this.pusher.push(singlePush(type, payload));
      refuseNoObject("options", options);
      const { signal, ...rest } = options;
      return this.pusher.push(singlePush(type, payload, rest), signal);
    }
    refuseNoObject("options", options ?? {});
    const { signal, ackLevel, ...own } = options ?? {};
    const [pushed] = await this.through([outgoingOf(type, payload, own)], undefined, async (jobs) => {
      const one = sealedJob(this.codec, jobs[0] as Outgoing);
      return [await this.pusher.push(pushOf(one, ackLevel), signal)];
    });
    return pushed as Pushed;
  }

  /** Pushes many jobs in one call. */
  async pushMany<P>(
    job: JobType<P, unknown> | string,
    jobs: readonly (P | NewJob<P>)[],
    options: ManyOptions,
  ): Promise<Pushed[]> {
    if (!Array.isArray(jobs)) {
      throw new InvalidArgument("jobs: pushMany() takes an array; push() takes one job");
    }
    refuseNoObject("options", options);
    if (jobs.length === 0) return [];
    const type = jobTypeOf(job);
    if (this.isPlain) {
      const request = fitting(() => requestOfMany(type, jobs, options));
      return this.pusher.together(() => this.connection.push(request, jobs.length));
    }
    const outgoing = fitting(() => outgoingOfMany(type, jobs, options));
    const { requestId } = options;
    return this.through(outgoing, requestId, async (changed) => {
      const sealed = changed.map((one, index) =>
        sealedJob(this.codec, one, requestId === undefined ? "" : `request:${requestId}:${index}`),
      );
      const request = fitting(() => requestOfOutgoing(sealed, options));
      return this.pusher.together(() => this.connection.push(request, changed.length));
    });
  }

  /** Refuses new pushes, and returns when the others have been answered. */
  close(): Promise<void> {
    return this.pusher.close();
  }

  private through(
    jobs: readonly Outgoing[],
    requestId: string | undefined,
    send: PushNext,
  ): Promise<Pushed[]> {
    // The server knows a repeat by all of its request, headers included.
    const mayDiffer = requestId === undefined;
    const traced: PushNext = this.tracing ? (changed) => tracedPush(changed, send, mayDiffer) : send;
    return through(this.middleware, jobs, traced);
  }

  private get isPlain(): boolean {
    return this.middleware.length === 0 && !this.codec && !(this.tracing && isTraced());
  }
}
