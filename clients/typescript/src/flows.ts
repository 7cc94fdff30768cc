import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Client } from "./client.js";
import { JSON_TYPE } from "./codec.js";
import { InvalidArgument } from "./errors.js";
import { refuseNoArray } from "./given.js";
import { encodePayload, type JobType, jobTypeOf } from "./job_type.js";
import { type EnumName, enumNumber, type PushOptions, refuseUnknown } from "./options.js";
import { fitting, rowOf } from "./push/messages.js";
import { sealedJob } from "./sealing/payload_codec.js";
import {
  FlowJobSchema,
  type FlowParent,
  type PushFlowRequest,
  PushFlowRequestSchema,
} from "./v1/flow_service_pb.js";
import { DependencyPolicy } from "./v1/job_pb.js";

/** How a job of a flow is pushed, and which jobs it waits for. */
export interface FlowJobOptions
  extends Omit<PushOptions, "jobKey" | "uniqueKey" | "ackLevel" | "dependsOn" | "batchId"> {
  /** Jobs that must complete before it is ready. One may be a child of several. */
  children?: readonly FlowJob[];
  /** What its parents do if it does not complete, instead of their `onDependencyFailure`. */
  onFailure?: EnumName<typeof DependencyPolicy>;
}

/** A job of a flow, with the jobs that it waits for. */
export class FlowJob {
  private constructor(
    /** The declared job. */
    readonly job: JobType<unknown, unknown>,
    /** Its payload. */
    readonly payload: unknown,
    /** How it is pushed. */
    readonly options: FlowJobOptions,
  ) {}

  /** Makes a job of a flow; nothing is sent. Throws InvalidArgument for what is no job, child or option. */
  static of<P>(
    job: JobType<P, unknown> | string,
    payload: NoInfer<P>,
    options: FlowJobOptions = {},
  ): FlowJob {
    refuseUnknown(options, ["children", "onFailure"]);
    refuseNoArray("children", "FlowJobs", options.children ?? [], isFlowJob);
    return new FlowJob(jobTypeOf(job as JobType<unknown, unknown> | string), payload, options);
  }
}

const isFlowJob = (one: unknown): boolean => one instanceof FlowJob;

/** The ids of a flow. */
export interface FlowPushed {
  /** The id of the first root. */
  readonly id: bigint;
  /** The id of each job. */
  readonly ids: ReadonlyMap<FlowJob, bigint>;
}

/** Pushes a flow, once however often the call is repeated. */
export async function pushFlow(
  client: Client,
  roots: readonly FlowJob[],
  parent?: Pick<FlowParent, "id" | "delivery">,
  requestId: string = randomUUID(),
): Promise<FlowPushed> {
  const { request, jobs } = fitting(() => flowRequest(client, roots, requestId, parent));
  const { ids } = await client.admin.flows.pushFlow(request);
  return { id: ids[0] ?? 0n, ids: new Map(jobs.map((job, index) => [job, ids[index] ?? 0n])) };
}

function flowRequest(
  { codec }: Client,
  roots: readonly FlowJob[],
  requestId: string,
  parent: Pick<FlowParent, "id" | "delivery"> | undefined,
): { request: PushFlowRequest; jobs: FlowJob[] } {
  if (roots.length === 0) throw new InvalidArgument("a flow has at least one job");
  refuseNoArray("jobs", "FlowJobs", roots, isFlowJob);
  const jobs = new Set<FlowJob>(roots);
  // A set is read in the order of its making, new members included: the roots first, each job once.
  for (const job of jobs) for (const child of job.options.children ?? []) jobs.add(child);
  const indexes = new Map([...jobs].map((job, index) => [job, index]));
  const messages = [...jobs].map(({ job, payload, options }, index) => {
    const { children = [], onFailure, ...own } = options;
    const { data, isJson } = encodePayload(job, payload);
    const plain = {
      queue: job.queue,
      payload: data,
      options: { ...(isJson && { contentType: JSON_TYPE }), ...job.options, ...own },
    };
    // The same again, if the call is repeated under the same id.
    const sealed = sealedJob(codec, plain, `request:${requestId}:${index}`);
    return create(FlowJobSchema, {
      queue: job.queue,
      job: rowOf(sealed.payload, sealed.options, false),
      children: children.map((child) => indexes.get(child) ?? 0),
      ...(onFailure && { onFailure: enumNumber(DependencyPolicy, onFailure, "onFailure") }),
    });
  });
  const request = create(PushFlowRequestSchema, { jobs: messages, requestId, ...(parent && { parent }) });
  return { request, jobs: [...jobs] };
}
