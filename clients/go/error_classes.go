package jobline

import "google.golang.org/grpc/codes"

// Classes of errors, for errors.Is. A narrow class belongs to the wider one named beside it.
var (
	// ErrRefused is every definite refusal: nothing was stored or changed.
	ErrRefused = kind("refused", nil)

	// ErrInvalidArgument (of ErrRefused): a field is missing, malformed or out of range; Field names it.
	ErrInvalidArgument = kind("invalid argument", ErrRefused)
	// ErrCodec (of ErrInvalidArgument): a value has no JSON, or JSON is not of the declared type.
	ErrCodec = kind("codec", ErrInvalidArgument)
	// ErrSealed (of ErrCodec): a sealed frame cannot be read, see Codec. A worker settles such a job as DEAD.
	ErrSealed = kind("sealed frame", ErrCodec)
	// ErrKeyErased (of ErrSealed): the key of a sealed frame is not there any more.
	ErrKeyErased = kind("key erased", ErrSealed)
	// ErrPayloadMisfit (of ErrInvalidArgument): the payload fits no schema of its handlers.
	ErrPayloadMisfit = kind("payload misfit", ErrInvalidArgument)

	// ErrNotFound (of ErrRefused): there is no such thing.
	ErrNotFound = kind("not found", ErrRefused)
	// ErrJobNotFound (of ErrNotFound): the job never was, or its retention has passed.
	ErrJobNotFound = kind("job not found", ErrNotFound)
	// ErrQueueNotFound (of ErrNotFound).
	ErrQueueNotFound = kind("queue not found", ErrNotFound)
	// ErrScheduleNotFound (of ErrNotFound).
	ErrScheduleNotFound = kind("schedule not found", ErrNotFound)
	// ErrBatchNotFound (of ErrNotFound): complete batches are kept for a day.
	ErrBatchNotFound = kind("batch not found", ErrNotFound)
	// ErrLimiterNotFound (of ErrNotFound).
	ErrLimiterNotFound = kind("limiter not found", ErrNotFound)

	// ErrAlreadyExists (of ErrRefused): there is such a thing already.
	ErrAlreadyExists = kind("already exists", ErrRefused)
	// ErrIdempotencyMismatch (of ErrAlreadyExists): the key or request id is known with another payload.
	ErrIdempotencyMismatch = kind("idempotency mismatch", ErrAlreadyExists)
	// ErrUniqueKeyHeld (of ErrAlreadyExists): another job holds the unique key, and the push asked for UniqueReject.
	ErrUniqueKeyHeld = kind("unique key held", ErrAlreadyExists)

	// ErrFailedPrecondition (of ErrRefused): the state of the server, a queue or a job does not allow it.
	ErrFailedPrecondition = kind("failed precondition", ErrRefused)
	// ErrLeaseLost (of ErrFailedPrecondition): another worker may have the job.
	ErrLeaseLost = kind("lease lost", ErrFailedPrecondition)
	// ErrWrongState (of ErrFailedPrecondition): the job's state does not allow it.
	ErrWrongState = kind("wrong state", ErrFailedPrecondition)
	// ErrQueueNotCreated (of ErrFailedPrecondition): the queue does not exist, and a push does not create it.
	ErrQueueNotCreated = kind("queue not created", ErrFailedPrecondition)
	// ErrBatchComplete (of ErrFailedPrecondition): the batch takes no new members.
	ErrBatchComplete = kind("batch complete", ErrFailedPrecondition)
	// ErrProtocolMistake (of ErrFailedPrecondition): a stream broke the protocol.
	ErrProtocolMistake = kind("protocol mistake", ErrFailedPrecondition)
	// ErrClosed (of ErrFailedPrecondition): the client was closed, or the worker has run.
	ErrClosed = kind("closed", ErrFailedPrecondition)

	// ErrOutOfRange (of ErrRefused): a position is outside what is kept.
	ErrOutOfRange = kind("out of range", ErrRefused)
	// ErrNotServed (of ErrRefused): this server does not serve the call or field.
	ErrNotServed = kind("not served", ErrRefused)
	// ErrPermissionDenied (of ErrRefused): the caller may not do this.
	ErrPermissionDenied = kind("permission denied", ErrRefused)
	// ErrUnauthenticated (of ErrRefused): the caller is not known.
	ErrUnauthenticated = kind("unauthenticated", ErrRefused)

	// ErrResourceExhausted (of ErrRefused, retryable): a limit is reached; Reason says which.
	ErrResourceExhausted = kindOf(true, "resource exhausted", ErrRefused)
	// ErrQueueFull (of ErrResourceExhausted): the queue has as many waiting jobs as it may.
	ErrQueueFull = kind("queue full", ErrResourceExhausted)
	// ErrGroupFull (of ErrResourceExhausted): the group has as many waiting jobs as it may.
	ErrGroupFull = kind("group full", ErrResourceExhausted)
	// ErrServerFull (of ErrResourceExhausted): the server has reached a limit of its own.
	ErrServerFull = kind("server full", ErrResourceExhausted)
	// ErrDiskFull (of ErrResourceExhausted): the server's disk is full; acks go on.
	ErrDiskFull = kind("disk full", ErrResourceExhausted)
	// ErrBufferFull (of ErrResourceExhausted): this client's own buffer of pushes is full.
	ErrBufferFull = kind("buffer full", ErrResourceExhausted)
	// ErrTooLarge (of ErrResourceExhausted, not retryable): the message or batch is larger than the limit.
	ErrTooLarge = kindOf(false, "too large", ErrResourceExhausted)

	// ErrUnavailable (retryable): no server answered, or it is draining.
	ErrUnavailable = kindOf(true, "unavailable", nil)
	// ErrNotConnected (of ErrUnavailable, definite): no server was reached since the client was made.
	ErrNotConnected = kind("not connected", ErrUnavailable)
	// ErrNoToken (of ErrUnavailable, definite): TokenFunc returned no token, so the call was not sent.
	ErrNoToken = kind("no token", ErrUnavailable)
	// ErrDeadlineExceeded (retryable): the answer did not come in time.
	ErrDeadlineExceeded = kindOf(true, "deadline exceeded", nil)
	// ErrOutcomeUnknown (retryable): a write was sent and no definite answer came. Repeat a push with the
	// same JobKey or the error's RequestID, and nothing is stored twice.
	ErrOutcomeUnknown = kindOf(true, "outcome unknown", nil)
	// ErrDataLoss: the stored record is damaged.
	ErrDataLoss = kind("data loss", nil)
	// ErrInternal: a bug in the server, or an answer that is not of this protocol.
	ErrInternal = kind("internal", nil)

	// ErrNotDone: a job that was waited for ended other than well; End has reason and error.
	ErrNotDone = kind("job not done", nil)
	// ErrJobDead (of ErrNotDone): it is in the dead letters.
	ErrJobDead = kind("job dead", ErrNotDone)
	// ErrJobCancelled (of ErrNotDone): it was cancelled.
	ErrJobCancelled = kind("job cancelled", ErrNotDone)
	// ErrJobExpired (of ErrNotDone): its time to live passed before it ran.
	ErrJobExpired = kind("job expired", ErrNotDone)
	// ErrWaitTimeout (retryable): the job has not ended in time. It goes on; ID is what to wait for again.
	ErrWaitTimeout = kindOf(true, "wait timeout", nil)
)

var classByReason = map[string]error{
	"JOB_NOT_FOUND":        ErrJobNotFound,
	"QUEUE_NOT_FOUND":      ErrQueueNotFound,
	"SCHEDULE_NOT_FOUND":   ErrScheduleNotFound,
	"BATCH_NOT_FOUND":      ErrBatchNotFound,
	"LIMITER_NOT_FOUND":    ErrLimiterNotFound,
	"IDEMPOTENCY_MISMATCH": ErrIdempotencyMismatch,
	"UNIQUE_KEY_HELD":      ErrUniqueKeyHeld,
	"LEASE_LOST":           ErrLeaseLost,
	"WRONG_STATE":          ErrWrongState,
	"QUEUE_NOT_CREATED":    ErrQueueNotCreated,
	"BATCH_COMPLETE":       ErrBatchComplete,
	"PROTOCOL_MISTAKE":     ErrProtocolMistake,
	"PAYLOAD_MISFIT":       ErrPayloadMisfit,
	"QUEUE_FULL":           ErrQueueFull,
	"GROUP_FULL":           ErrGroupFull,
	"SERVER_FULL":          ErrServerFull,
	"KEYS_FULL":            ErrServerFull,
	"DISK_FULL":            ErrDiskFull,
	"TOO_LARGE":            ErrTooLarge,
}

var classByCode = map[codes.Code]error{
	codes.InvalidArgument:    ErrInvalidArgument,
	codes.NotFound:           ErrNotFound,
	codes.AlreadyExists:      ErrAlreadyExists,
	codes.FailedPrecondition: ErrFailedPrecondition,
	codes.OutOfRange:         ErrOutOfRange,
	codes.Unimplemented:      ErrNotServed,
	codes.PermissionDenied:   ErrPermissionDenied,
	codes.Unauthenticated:    ErrUnauthenticated,
	codes.ResourceExhausted:  ErrResourceExhausted,
	codes.Unavailable:        ErrUnavailable,
	codes.Canceled:           ErrUnavailable,
	codes.Aborted:            ErrUnavailable,
	codes.DeadlineExceeded:   ErrDeadlineExceeded,
	codes.DataLoss:           ErrDataLoss,
}
