/**
 * The tree of errors. Each has the facts that the server sent: `reason`, `field`, `retryAfter`.
 *
 * `definite` means that nothing has changed; `retryable`, that the same call may succeed later.
 */

/** What a server says of an error beside its message. */
export interface ErrorFacts {
  /** The name of a value of `jobline.v1.ErrorReason`, or one of this client; "" if unknown. */
  readonly reason?: string;
  /** The gRPC status code, such as `INVALID_ARGUMENT`; "" for errors of this client. */
  readonly code?: string;
  /** Why each wrong field is wrong, by the path of the field. */
  readonly fields?: Readonly<Record<string, string>>;
  /** When to try again, in milliseconds; an hour at most. */
  readonly retryAfter?: number;
  /** Further facts; `id` is the job or batch that the error is about. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** What caused it. */
  readonly cause?: unknown;
}

/** The base of all errors of this package. */
export class JoblineError extends Error {
  /** Whether the same call may succeed later. */
  readonly retryable: boolean = false;
  /** Whether nothing was stored or changed by the call. */
  readonly definite: boolean = false;
  /** What the server said beside the message. */
  readonly facts: Omit<ErrorFacts, "cause">;

  /** Makes an error; the server's facts are optional. */
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    const { cause: _, ...told } = facts; // Node would show it twice
    this.facts = told;
  }

  /** The reason, such as `QUEUE_FULL`; "" if there is none. */
  get reason(): string {
    return this.facts.reason ?? "";
  }

  /** The path of the first wrong field, such as `options.lease`. */
  get field(): string | undefined {
    return Object.keys(this.facts.fields ?? {})[0];
  }

  /** The job or batch that the error is about. */
  get id(): bigint | undefined {
    const id = this.facts.metadata?.id;
    return id !== undefined && /^\d+$/.test(id) ? BigInt(id) : undefined;
  }

  /** How long to wait before another try, in milliseconds, if the server says so. */
  get retryAfter(): number | undefined {
    return this.facts.retryAfter;
  }
}

/** A refusal: nothing has changed. */
export class Refused extends JoblineError {
  override readonly definite: boolean = true;
}

/** A field is missing, malformed or out of range; `field` names it. */
export class InvalidArgument extends Refused {}
/** The payload fits no schema that the handlers of its name announce. */
export class PayloadMisfit extends InvalidArgument {}
/** A value cannot be turned into bytes, or bytes into a value. */
export class CodecError extends InvalidArgument {}
/** The key of something sealed was erased: it can be read no more. A worker ends such a job as dead. */
export class KeyErased extends CodecError {}
/** There is no such thing. */
export class NotFound extends Refused {}
/** There is no such job, or none that is kept any more. */
export class JobNotFound extends NotFound {}
/** There is no such queue. */
export class QueueNotFound extends NotFound {}
/** There is no such batch; complete ones are kept for a day. */
export class BatchNotFound extends NotFound {}
/** There is no schedule of this name. */
export class ScheduleNotFound extends NotFound {}
/** There is no limiter of this name. */
export class LimiterNotFound extends NotFound {}
/** There is such a thing already. */
export class AlreadyExists extends Refused {}
/** The `jobKey` is known with another payload, or the `requestId` with another request. */
export class IdempotencyMismatch extends AlreadyExists {}
/** Another job holds the `uniqueKey`, and the push asked for "reject". */
export class UniqueKeyHeld extends AlreadyExists {}
/** The state of something does not allow the call. */
export class FailedPrecondition extends Refused {}
/** The job is not leased under this delivery any more. */
export class LeaseLost extends FailedPrecondition {}
/** The batch is complete or cancelled, and takes no new members. */
export class BatchComplete extends FailedPrecondition {}
/** The job's state does not allow it. */
export class WrongState extends FailedPrecondition {}
/** The worker's stream broke the protocol; the message names the place. */
export class ProtocolMistake extends FailedPrecondition {}
/** The client or worker was closed. */
export class ClientClosed extends FailedPrecondition {}
/** A position is outside what is kept. */
export class OutOfRange extends Refused {}
/** The server does not serve this part of the protocol; `field` names it. */
export class NotServed extends Refused {}
/** The caller may not do this. */
export class PermissionDenied extends Refused {}
/** The caller is not known. */
export class Unauthenticated extends Refused {}
/** A limit is reached; nothing was stored. Try again after `retryAfter`. */
export class ResourceExhausted extends Refused {
  override readonly retryable: boolean = true;
}
/** The queue has reached its limit of waiting jobs. */
export class QueueFull extends ResourceExhausted {}
/** The group has reached its limit of waiting jobs. */
export class GroupFull extends ResourceExhausted {}
/** The server has reached one of its limits. */
export class ServerFull extends ResourceExhausted {}
/** The server's disk is full; acks go on. */
export class DiskFull extends ResourceExhausted {}
/** This client's own buffer of pushes is full: the server is slower than the callers. */
export class BufferFull extends ResourceExhausted {}
/** The message or the batch is larger than the limit; the same call never succeeds. */
export class TooLarge extends ResourceExhausted {
  override readonly retryable: boolean = false;
}
/** No server answered, or it is draining. */
export class Unavailable extends JoblineError {
  override readonly retryable: boolean = true;
}
/** No server could be reached since the client was made: nothing was sent. */
export class NotConnected extends Unavailable {
  override readonly definite: boolean = true;
}
/** The function `token` returned none: nothing was sent. */
export class NoToken extends Unavailable {
  override readonly definite: boolean = true;
}
/** The answer did not come in time. */
export class DeadlineExceeded extends JoblineError {
  override readonly retryable: boolean = true;
}
/**
 * A write was sent and no definite answer came: it may have happened or not. A push that is repeated with the
 * same `jobKey` is stored once.
 */
export class OutcomeUnknown extends JoblineError {
  override readonly retryable: boolean = true;
}
/** The stored record is damaged. */
export class DataLoss extends JoblineError {}
/** A bug in the server, or an answer that is not of this protocol. */
export class Internal extends JoblineError {}
/** The job has not ended in time. It goes on; `id` is what to wait for again. */
export class WaitTimeout extends JoblineError {
  override readonly retryable: boolean = true;
}
/** The job ended otherwise than well; `end` says how. */
export class JobNotDone extends JoblineError {}
/** The job is dead; `facts.metadata` has the type of its error. */
export class JobDead extends JobNotDone {}
/** The job was cancelled. */
export class JobCancelled extends JobNotDone {}
/** The job's TTL passed before it ran. */
export class JobExpired extends JobNotDone {}
