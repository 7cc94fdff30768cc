import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { ServiceError } from "@grpc/grpc-js";
import { status } from "@grpc/grpc-js";
import * as errors from "./errors.js";
import { oneLine } from "./one_line.js";
import { ASKED_MAX } from "./timers.js";
import { sentenceOf } from "./unreachable.js";

/** Where a `google.rpc.Status` with the details of an error travels. */
const DETAILS_KEY = "grpc-status-details-bin";
const DOMAIN = "jobline";

type Made = new (message: string, facts: errors.ErrorFacts) => errors.JoblineError;

/** Reason → class. A reason that is not here gets the class of its status code. */
const BY_REASON: Record<string, Made> = {
  JOB_NOT_FOUND: errors.JobNotFound,
  QUEUE_NOT_FOUND: errors.QueueNotFound,
  BATCH_NOT_FOUND: errors.BatchNotFound,
  SCHEDULE_NOT_FOUND: errors.ScheduleNotFound,
  LIMITER_NOT_FOUND: errors.LimiterNotFound,
  IDEMPOTENCY_MISMATCH: errors.IdempotencyMismatch,
  UNIQUE_KEY_HELD: errors.UniqueKeyHeld,
  PAYLOAD_MISFIT: errors.PayloadMisfit,
  LEASE_LOST: errors.LeaseLost,
  BATCH_COMPLETE: errors.BatchComplete,
  WRONG_STATE: errors.WrongState,
  PROTOCOL_MISTAKE: errors.ProtocolMistake,
  QUEUE_FULL: errors.QueueFull,
  GROUP_FULL: errors.GroupFull,
  SERVER_FULL: errors.ServerFull,
  DISK_FULL: errors.DiskFull,
  TOO_LARGE: errors.TooLarge,
};

const BY_CODE: Record<string, Made> = {
  INVALID_ARGUMENT: errors.InvalidArgument,
  NOT_FOUND: errors.NotFound,
  ALREADY_EXISTS: errors.AlreadyExists,
  FAILED_PRECONDITION: errors.FailedPrecondition,
  OUT_OF_RANGE: errors.OutOfRange,
  UNIMPLEMENTED: errors.NotServed,
  PERMISSION_DENIED: errors.PermissionDenied,
  UNAUTHENTICATED: errors.Unauthenticated,
  RESOURCE_EXHAUSTED: errors.ResourceExhausted,
  UNAVAILABLE: errors.Unavailable,
  CANCELLED: errors.Unavailable,
  ABORTED: errors.Unavailable,
  DEADLINE_EXCEEDED: errors.DeadlineExceeded,
  DATA_LOSS: errors.DataLoss,
};

/**
 * Returns the typed error of what gRPC reported of a call to `target`, by TLS or not; errors of this package as they
 * are.
 */
export function errorOf(error: unknown, target = "the server", isTls = false): errors.JoblineError {
  if (error instanceof errors.JoblineError) return error;
  if (!isServiceError(error)) {
    const message = error instanceof Error ? error.message : String(error);
    return new errors.Internal(message, { cause: error });
  }
  const code = status[error.code] ?? "UNKNOWN";
  const details = error.metadata.get(DETAILS_KEY)[0];
  const facts = details instanceof Uint8Array ? factsOf(details, code) : { code };
  const said = error.details || error.message;
  const Kind = BY_REASON[facts.reason ?? reasonOf(code, said)] ?? BY_CODE[code] ?? errors.Internal;
  return new Kind(oneLine(details === undefined ? sentenceOf(said, target, isTls) : said), facts);
}

/** Returns the reason that an error of the transport would have: a message over its limit never fits. */
function reasonOf(code: string, said: string): string {
  const isTooLarge = code === "RESOURCE_EXHAUSTED" && /larger than|^a message has at most/.test(said);
  return isTooLarge ? "TOO_LARGE" : "";
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "metadata" in error && typeof error.code === "number";
}

/** Returns the error of a write: a definite one as it is, any other as OutcomeUnknown. */
export function outcomeUnknown(error: errors.JoblineError, tries: number): errors.JoblineError {
  if (isDefinite(error, tries)) return error;
  const facts = { ...error.facts, cause: error };
  return new errors.OutcomeUnknown(`the outcome is not known: ${error.message}`, facts);
}

/**
 * Returns whether nothing was stored. After several tries, the first of which may have been stored, only a
 * reply of the server to this very request proves it.
 */
export function isDefinite(error: errors.JoblineError, tries: number): boolean {
  const isOfThisTry =
    error instanceof errors.ClientClosed ||
    error instanceof errors.PermissionDenied ||
    error instanceof errors.Unauthenticated ||
    error instanceof errors.NotConnected ||
    error instanceof errors.NoToken;
  return error.definite && (tries === 1 || !isOfThisTry);
}

/** Returns whether to make a write again after this try: it may succeed, and be stored once. */
export function mayRepeat(error: errors.JoblineError, tries: number): boolean {
  // An earlier try may have been stored: what became of it is worth another token.
  const isLater = tries > 1 && error instanceof errors.NoToken;
  return error.retryable && (!error.definite || isLater);
}

/** Returns an error of the same kind: callers that share a call do not share an object. */
export function twinOf(error: errors.JoblineError): errors.JoblineError {
  const Kind = error.constructor as Made;
  return new Kind(error.message, { ...error.facts, cause: error.cause });
}

interface Facts {
  reason?: string;
  code: string;
  fields: Record<string, string>;
  retryAfter?: number;
  metadata: Record<string, string>;
}

/** Returns the details of an error; damaged ones count as none, since the code is enough to act on. */
function factsOf(details: Uint8Array, code: string): errors.ErrorFacts {
  const facts: Facts = { code, fields: {}, metadata: {} };
  try {
    for (const any of fieldsOf(details).of(3)) readDetail(fieldsOf(any), facts);
  } catch {
    return { code };
  }
  return facts;
}

function readDetail(any: Fields, facts: Facts): void {
  const kind = any.text(1).split("/").pop();
  const value = fieldsOf(any.of(2)[0] ?? new Uint8Array());
  if (kind === "google.rpc.ErrorInfo" && value.text(2) === DOMAIN) {
    facts.reason = value.text(1);
    for (const entry of value.of(3).map(fieldsOf)) facts.metadata[entry.text(1)] = entry.text(2);
  } else if (kind === "google.rpc.BadRequest") {
    for (const violation of value.of(1).map(fieldsOf)) facts.fields[violation.text(1)] = violation.text(2);
  } else if (kind === "google.rpc.QuotaFailure") {
    for (const quota of value.of(1).map(fieldsOf)) facts.metadata[`quota:${quota.text(1)}`] = quota.text(2);
  } else if (kind === "google.rpc.RetryInfo") {
    const delay = fieldsOf(value.of(1)[0] ?? new Uint8Array());
    const asked = delay.number(1) * 1_000 + delay.number(2) / 1e6;
    facts.retryAfter = Math.min(Math.max(asked, 0), ASKED_MAX);
  }
}

/** The fields of a message without a descriptor: googleapis' few messages need no stubs of their own. */
class Fields {
  readonly bytes = new Map<number, Uint8Array[]>();
  readonly numbers = new Map<number, number>();

  of(number: number): Uint8Array[] {
    return this.bytes.get(number) ?? [];
  }

  text(number: number): string {
    return new TextDecoder().decode(this.of(number)[0]);
  }

  number(number: number): number {
    return this.numbers.get(number) ?? 0;
  }
}

function fieldsOf(message: Uint8Array): Fields {
  const fields = new Fields();
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (type === WireType.LengthDelimited) {
      const values = fields.bytes.get(number);
      if (values) values.push(reader.bytes());
      else fields.bytes.set(number, [reader.bytes()]);
    } else if (type === WireType.Varint) {
      fields.numbers.set(number, Number(reader.int64()));
    } else {
      reader.skip(type, number);
    }
  }
  return fields;
}
