import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import { encode } from "../codec.js";
import { InvalidArgument } from "../errors.js";
import { refuseNoObject } from "../given.js";
import type { JobType } from "../job_type.js";
import { type EnumName, enumNumber } from "../options.js";
import { JobFilterSchema } from "../v1/job_admin_service_pb.js";
import { JobState } from "../v1/job_pb.js";
import { plainOf, type SeenJob } from "./seen_job.js";

/** The name of a job's state. */
export type StateName = EnumName<typeof JobState>;

/** Which jobs: what is left out is not asked for. */
export interface Conditions {
  /** The queue. */
  queue?: string;
  /** The name; "" for jobs without one. */
  name?: string;
  /** One state, or any of several. */
  state?: StateName | readonly StateName[];
  /** The group. */
  group?: string;
  /** Tags that it must have, all of them. */
  tags?: readonly string[];
  /** Headers that must be equal. */
  headers?: Readonly<Record<string, string>>;
  /** The batch that it is a member of. */
  batchId?: bigint;
}

/** Which jobs, by their payloads, too. */
export interface PushedConditions extends Conditions {
  /** What the payload must be. */
  payload?: unknown;
  /** A part of it: some keys of an object, at any depth; some items of an array; a piece of a text. */
  payloadContains?: unknown;
}

/** A declared job, which stands for its queue and name; or the name of jobs, in whatever queue. */
export type What = JobType<never, unknown> | JobType<unknown, unknown> | string;

const KNOWN = ["queue", "name", "state", "group", "tags", "headers", "batchId", "payload", "payloadContains"];

/** Returns conditions together with those that a declared job or a name stands for. */
export function conditionsOf<C extends Conditions>(what: What | undefined, conditions: C): C {
  refuseNoObject("conditions", conditions);
  for (const name of Object.keys(conditions)) {
    if (!KNOWN.includes(name)) throw new InvalidArgument(`${name}: there is no such condition`);
  }
  if (what === undefined) return conditions;
  if (typeof what === "string") return { name: what, ...conditions };
  return { queue: what.queue, name: what.name, ...conditions };
}

/** Returns the filter of conditions. */
export function filterOf({ queue, name, state = [], group, tags, headers, batchId }: Conditions) {
  return create(JobFilterSchema, {
    states: [state].flat().map((one) => enumNumber(JobState, one, "state")),
    ...(queue !== undefined && { queue }),
    ...(name !== undefined && { name }),
    ...(group !== undefined && { group }),
    ...(tags && { tags: [...tags] }),
    ...(headers && { headers: { ...headers } }),
    ...(batchId !== undefined && { batchId }),
  });
}

/** Returns whether a job's payload is as wanted. */
export function hasPayload({ payload }: SeenJob, wanted: PushedConditions): boolean {
  if ("payload" in wanted && !isDeepStrictEqual(payload, afterPush(wanted.payload))) return false;
  return !("payloadContains" in wanted) || contains(payload, afterPush(wanted.payloadContains));
}

/** Returns a value as it is after a push. */
function afterPush(value: unknown): unknown {
  return plainOf(encode(value).data);
}

function contains(value: unknown, part: unknown): boolean {
  if (typeof value === "string" && typeof part === "string") return value.includes(part);
  if (value instanceof Uint8Array && part instanceof Uint8Array)
    return Buffer.from(value).includes(Buffer.from(part));
  return has(value, part);
}

function has(value: unknown, part: unknown): boolean {
  if (Array.isArray(value) && Array.isArray(part)) {
    return part.every((wanted) => value.some((item) => has(item, wanted)));
  }
  if (!isObject(value) || !isObject(part)) return isDeepStrictEqual(value, part);
  return Object.entries(part).every(([key, wanted]) => key in value && has(value[key], wanted));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
