import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationMessage, timestampMessage } from "./duration.js";
import { InvalidArgument } from "./errors.js";
import { wrongly } from "./given.js";
import { refuseUnless } from "./known_options.js";
import {
  BackoffKind,
  BackoffSchema,
  DeliveryMode,
  DependencyPolicy,
  type JobOptions as JobOptionsMessage,
  JobOptionsSchema,
  OnDeadHead,
  RetentionSchema,
  UniqueMode,
} from "./v1/job_pb.js";

/** The names of an enum of the protocol, in lower case. */
export type EnumName<E> = Lowercase<Exclude<keyof E & string, "UNSPECIFIED">>;

/** The pause before the next attempt. */
export interface Backoff {
  /** How the pause grows; default "exponential". */
  kind?: EnumName<typeof BackoffKind>;
  /** The first pause, up to 24 h; default 1 s. */
  base?: Duration;
  /** The longest pause, up to 24 h; default 1 h. */
  maxDelay?: Duration;
  /** Share by which a pause may be shorter or longer, 0 … 1; default 0.1. */
  jitter?: number;
  /** The pauses one by one, the last one repeated; at most 100. */
  delays?: readonly Duration[];
}

/** How long an ended job is kept. */
export interface Retention {
  /** Forget the job as soon as it completes. */
  removeOnComplete?: boolean;
  /** Forget the job as soon as it is dead. */
  removeOnFail?: boolean;
  /** How long until it is stale, up to 400 days. */
  age?: Duration;
  /** How many that ended later may be kept beside it. */
  count?: number;
  /** How long it is stale before it is deleted. */
  deleteAfter?: Duration;
}

/** What a job of some kind wants. What is left out takes the queue's setting, then the server's default. */
export interface JobOptions {
  /** The kind of work, ≤ 256 characters; workers route on it. */
  name?: string;
  /** What the payload is; JSON's unless the payload is bytes. */
  contentType?: string;
  /** At most 64 entries, 8 KiB together. Trace context travels here. */
  headers?: Readonly<Record<string, string>>;
  /** Higher goes first, any 32-bit integer; default 0. */
  priority?: number;
  /** How long a worker may stay silent, 1 s … 12 h; default 30 s. */
  lease?: Duration;
  /** How many attempts may fail before the job is dead, 1 … 1,000; 0: unlimited; default 3. */
  maxAttempts?: number;
  /** The pause before the next attempt. */
  backoff?: Backoff;
  /** How many lost leases are forgiven; default 3. */
  maxStalls?: number;
  /** How long the job is kept when it has ended. */
  retention?: Retention;
  /** Whether it goes before all that wait beside it. */
  lifo?: boolean;
  /** How long it may wait, up to 400 days; then it is expired. */
  ttl?: Duration;
  /** How long one attempt may take in all, 1 s … 400 days; then it has failed and its signal fires. */
  attemptTimeout?: Duration;
  /** No retry after this moment. */
  retryUntil?: Date;
  /** "once": the job is never handed out again after it may have run; default "at_least_once". */
  delivery?: EnumName<typeof DeliveryMode>;
  /** Ids of jobs that must complete first. */
  dependsOn?: readonly bigint[];
  /** What happens if one of `dependsOn` does not complete; default "fail". */
  onDependencyFailure?: EnumName<typeof DependencyPolicy>;
  /** How long it may be blocked. */
  blockTimeout?: Duration;
  /** The entity whose jobs run one at a time, in order; ≤ 256 characters. */
  group?: string;
  /** What its group does when this job is dead; default "continue". */
  onDeadHead?: EnumName<typeof OnDeadHead>;
  /** Whether it prefers the worker that had the last job of its group. */
  sticky?: boolean;
  /** Tokens that it takes of each limit; default 1. */
  cost?: number;
  /** Places of its worker's window; default 1. */
  slots?: number;
  /** Names of limiters to pass, at most 4. */
  limiters?: readonly string[];
  /** The batch that it is a member of. */
  batchId?: bigint;
  /** Names of the steps that the worker runs in order. */
  phases?: readonly string[];
  /** At most 16 words to filter by. */
  tags?: readonly string[];
  /** A URL told when this job ends. */
  webhook?: string;
  /** Hand it only to workers of this version or a newer one. */
  minWorkerVersion?: string;
  /** What happens while another job holds the unique key; default "keep". */
  uniqueMode?: EnumName<typeof UniqueMode>;
  /** How long the unique key is held. */
  uniqueTtl?: Duration;
  /** The longest time that "debounce" delays a job. */
  uniqueMaxWait?: Duration;
}

/** How one job is pushed: what belongs to this push and not to its kind. */
export interface PushOptions extends JobOptions {
  /** Idempotency key, 1 … 256 bytes: again within 24 h it returns the first job's id. */
  jobKey?: string;
  /** One unfinished job a key in a queue, 1 … 256 bytes. */
  uniqueKey?: string;
  /** When it becomes ready, from now, up to 400 days. */
  delay?: Duration;
  /** When it becomes ready; not together with `delay`. */
  runAt?: Date;
  /** When the push is answered; default "fsynced", or the queue's minimum. */
  ackLevel?: "memory" | "buffered" | "fsynced";
}

/** Returns the number of an enum's value by its name. Throws InvalidArgument, which names `field`. */
export function enumNumber<E extends Record<string, string | number>>(
  values: E,
  name: string,
  field: string,
): number {
  const number = values[String(name).toUpperCase()];
  if (typeof number === "number" && number !== 0) return number;
  const known = Object.keys(values).filter((key) => Number.isNaN(Number(key)) && values[key] !== 0);
  throw new InvalidArgument(`${field}: is one of ${known.join(", ").toLowerCase()}, not ${name}`, {
    fields: { [field]: "is unknown" },
  });
}

type Init = NonNullable<MessageInitShape<typeof JobOptionsSchema>>;
type Field = keyof JobOptions;

const SPANS: readonly [Field, keyof Init][] = [
  ["lease", "lease"],
  ["ttl", "ttl"],
  ["attemptTimeout", "timeout"],
  ["blockTimeout", "blockTimeout"],
  ["uniqueTtl", "uniqueTtl"],
  ["uniqueMaxWait", "uniqueMaxWait"],
];

const ENUMS: readonly [Field, Record<string, string | number>][] = [
  ["delivery", DeliveryMode],
  ["onDependencyFailure", DependencyPolicy],
  ["onDeadHead", OnDeadHead],
  ["uniqueMode", UniqueMode],
];

const NUMBERS: readonly Field[] = ["priority", "maxAttempts", "maxStalls", "cost", "slots"];

const PLAIN: readonly Field[] = [
  ...NUMBERS,
  "name",
  "contentType",
  "headers",
  "lifo",
  "dependsOn",
  "group",
  "sticky",
  "limiters",
  "batchId",
  "phases",
  "tags",
  "webhook",
  "minWorkerVersion",
];

const KNOWN = new Set<string>([
  ...PLAIN,
  ...SPANS.map(([field]) => field),
  ...ENUMS.map(([field]) => field),
  ...["backoff", "retention", "retryUntil"],
]);
const OF_PUSHES = new Set<string>(["jobKey", "uniqueKey", "delay", "runAt", "ackLevel"]);

/** Throws InvalidArgument for an option that does not exist: a misspelt one would be ignored in silence. */
export function refuseUnknown(options: object, also: readonly string[] = []): void {
  refuseUnless(options, (name) => KNOWN.has(name) || OF_PUSHES.has(name) || also.includes(name));
}

/** Returns the message of options. Throws InvalidArgument for what it cannot hold. */
export function optionsMessage(options: JobOptions): JobOptionsMessage {
  const init: Record<string, unknown> = {};
  for (const field of NUMBERS) refuseNoInteger(`options.${field}`, options[field], 2 ** 31 - 1);
  for (const field of PLAIN) {
    if (options[field] !== undefined) init[field] = options[field];
  }
  for (const [field, name] of SPANS) {
    const span = options[field] as Duration | undefined;
    if (span !== undefined) init[name] = durationMessage(span, `options.${field}`);
  }
  for (const [field, values] of ENUMS) {
    const name = options[field] as string | undefined;
    if (name !== undefined) init[field] = enumNumber(values, name, `options.${field}`);
  }
  if (options.retryUntil) init.retryUntil = timestampMessage(options.retryUntil, "options.retryUntil");
  if (options.backoff) init.backoff = backoffMessage(options.backoff);
  if (options.retention) init.retention = retentionMessage(options.retention);
  return create(JobOptionsSchema, init as Init);
}

/** Throws InvalidArgument for what is no whole number that its field can hold; undefined is none. */
function refuseNoInteger(field: string, given: unknown, most = Number.MAX_SAFE_INTEGER): void {
  const isOne = Number.isInteger(given) && Math.abs(given as number) <= most;
  if (given !== undefined && !isOne) throw wrongly(field, `a whole number up to ${most}`, given);
}

function backoffMessage(backoff: Backoff) {
  const at = "options.backoff";
  return create(BackoffSchema, {
    ...(backoff.kind && { kind: enumNumber(BackoffKind, backoff.kind, `${at}.kind`) }),
    ...(backoff.base !== undefined && { base: durationMessage(backoff.base, `${at}.base`) }),
    ...(backoff.maxDelay !== undefined && { maxDelay: durationMessage(backoff.maxDelay, `${at}.maxDelay`) }),
    ...(backoff.jitter !== undefined && { jitter: backoff.jitter }),
    delays: (backoff.delays ?? []).map((delay, index) => durationMessage(delay, `${at}.delays[${index}]`)),
  });
}

function retentionMessage(retention: Retention) {
  const at = "options.retention";
  const { age, count, deleteAfter, removeOnComplete, removeOnFail } = retention;
  refuseNoInteger(`${at}.count`, count);
  return create(RetentionSchema, {
    ...(removeOnComplete !== undefined && { removeOnComplete }),
    ...(removeOnFail !== undefined && { removeOnFail }),
    ...(age !== undefined && { age: durationMessage(age, `${at}.age`) }),
    ...(count !== undefined && { count: BigInt(count) }),
    ...(deleteAfter !== undefined && { deleteAfter: durationMessage(deleteAfter, `${at}.deleteAfter`) }),
  });
}
