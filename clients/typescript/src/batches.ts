import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client, PushCall } from "./client.js";
import { JSON_TYPE } from "./codec.js";
import { encodePayload, type JobType, jobTypeOf, type NewJob } from "./job_type.js";
import { refuseOthers } from "./known_options.js";
import { optionsMessage } from "./options.js";
import type { Pushed } from "./push/answers.js";
import { fitting, type ManyOptions } from "./push/messages.js";
import { sealedJob } from "./sealing/payload_codec.js";
import type { Batch, BatchCallbackSchema } from "./v1/batch_service_pb.js";

/** A job that a batch pushes. */
export interface BatchCallback {
  /** What to push. */
  readonly job: JobType<unknown, unknown> | string;
  /** Its payload, ≤ 64 KiB. */
  readonly payload?: unknown;
}

/** What a batch is created with. */
export interface BatchSettings {
  /** What it is, ≤ 256 characters. */
  name?: string;
  /** At most 16 words to filter by. */
  tags?: string[];
  /** The batch that this one is a member of. */
  parentId?: bigint;
  /** Pushed when all members have completed. */
  onSuccess?: BatchCallback;
  /** Pushed when all members have ended, however they did. */
  onComplete?: BatchCallback;
  /** Pushed when the first member is dead. */
  onFirstDeath?: BatchCallback;
}

const BATCH_SETTINGS: Record<keyof Required<BatchSettings>, true> = {
  ...({ name: true, tags: true, parentId: true } as const),
  ...({ onSuccess: true, onComplete: true, onFirstDeath: true } as const),
};

/** Creates a batch, once however often the call is repeated. */
export async function createBatch(client: Client, settings: BatchSettings): Promise<BatchRef> {
  refuseOthers(settings, BATCH_SETTINGS);
  const { onSuccess, onComplete, onFirstDeath, name, tags, parentId } = settings;
  const request = fitting(() => ({
    ...(name !== undefined && { name }),
    ...(tags && { tags: client.codec?.tags(tags) ?? tags }),
    ...(parentId !== undefined && { parentId }),
    ...(onSuccess && { onSuccess: callbackOf(client, onSuccess) }),
    ...(onComplete && { onComplete: callbackOf(client, onComplete) }),
    ...(onFirstDeath && { onFirstDeath: callbackOf(client, onFirstDeath) }),
    requestId: randomUUID(),
  }));
  const { batch } = await client.admin.batches.createBatch(request);
  return new BatchRef(client, batch?.id ?? 0n);
}

function callbackOf(
  { codec }: Client,
  callback: BatchCallback,
): MessageInitShape<typeof BatchCallbackSchema> {
  refuseOthers(callback, { job: true, payload: true });
  const { payload } = callback;
  const job = jobTypeOf(callback.job);
  const { data, isJson } = encodePayload(job, payload);
  const options = { ...(isJson && { contentType: JSON_TYPE }), ...job.options };
  const sealed = sealedJob(codec, { queue: job.queue, payload: data, options });
  return {
    queue: job.queue,
    payload: { case: "data", value: sealed.payload },
    options: optionsMessage(sealed.options),
  };
}

/** A batch, by its id. */
export class BatchRef {
  /** Refers to a batch. */
  constructor(
    private readonly client: Client,
    /** Its id. */
    readonly id: bigint,
  ) {}

  /** Pushes a job into the batch. */
  async push<P>(
    job: JobType<P, unknown> | string,
    payload: NoInfer<P>,
    options: PushCall = {},
  ): Promise<Pushed> {
    return this.client.push(job, payload, { ...options, batchId: this.id });
  }

  /** Pushes many jobs into the batch. */
  async pushMany<P>(
    job: JobType<P, unknown> | string,
    jobs: readonly (NoInfer<P> | NewJob<NoInfer<P>>)[],
    options: ManyOptions = {},
  ): Promise<Pushed[]> {
    return this.client.pushMany(job, jobs, { ...options, batchId: this.id });
  }

  /** Closes the batch: it is complete as soon as all of its members have ended. */
  async close(): Promise<Batch | undefined> {
    return (await this.client.admin.batches.closeBatch({ id: this.id })).batch;
  }

  /** Returns the batch with its counts. */
  async get(): Promise<Batch | undefined> {
    return (await this.client.admin.batches.getBatch({ id: this.id })).batch;
  }

  /** Cancels what is unfinished in the batch; `reason` is kept. */
  async cancel(reason = ""): Promise<void> {
    await this.client.admin.batches.cancelBatch({ id: this.id, reason });
  }
}
