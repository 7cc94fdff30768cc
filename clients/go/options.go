package jobline

import (
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// None says "no limit" or "none at all" where zero means "not set": for PushOptions.TTL, Timeout,
// MaxAttempts (unlimited) and MaxStalls.
const None = -1

// Aliases of the protocol's enums, whose values are constants of this package below.
type (
	// AckLevel says when a push is answered.
	AckLevel = joblinev1.AckLevel
	// PushOutcome is what became of one pushed job.
	PushOutcome = joblinev1.PushOutcome
	// DeliveryMode says how often a job may be handed out.
	DeliveryMode = joblinev1.DeliveryMode
	// UniqueMode is what a push does while another job holds its unique key.
	UniqueMode = joblinev1.UniqueMode
	// DependencyPolicy is what happens to a job when one that it depends on does not complete.
	DependencyPolicy = joblinev1.DependencyPolicy
	// JobState is where a job stands.
	JobState = joblinev1.JobState
	// EndReason is why a job ended other than well.
	EndReason = joblinev1.EndReason
	// LeaseReason is why a job was handed out.
	LeaseReason = joblinev1.LeaseReason
	// LogLevel is how much a line of a job's log matters.
	LogLevel = joblinev1.LogLevel
)

// Values of the options that say more than "not set".
const (
	AckMemory   = joblinev1.AckLevel_ACK_LEVEL_MEMORY
	AckBuffered = joblinev1.AckLevel_ACK_LEVEL_BUFFERED
	AckFsynced  = joblinev1.AckLevel_ACK_LEVEL_FSYNCED

	PushCreated   = joblinev1.PushOutcome_PUSH_OUTCOME_CREATED
	PushDuplicate = joblinev1.PushOutcome_PUSH_OUTCOME_DUPLICATE
	PushReplaced  = joblinev1.PushOutcome_PUSH_OUTCOME_REPLACED
	PushExtended  = joblinev1.PushOutcome_PUSH_OUTCOME_EXTENDED
	PushThrottled = joblinev1.PushOutcome_PUSH_OUTCOME_THROTTLED
	PushDebounced = joblinev1.PushOutcome_PUSH_OUTCOME_DEBOUNCED
	PushParked    = joblinev1.PushOutcome_PUSH_OUTCOME_PARKED
	PushRefused   = joblinev1.PushOutcome_PUSH_OUTCOME_REFUSED

	DeliverAtLeastOnce = joblinev1.DeliveryMode_DELIVERY_MODE_AT_LEAST_ONCE
	DeliverOnce        = joblinev1.DeliveryMode_DELIVERY_MODE_ONCE

	UniqueKeep        = joblinev1.UniqueMode_UNIQUE_MODE_KEEP
	UniqueReplace     = joblinev1.UniqueMode_UNIQUE_MODE_REPLACE
	UniqueExtend      = joblinev1.UniqueMode_UNIQUE_MODE_EXTEND
	UniqueReject      = joblinev1.UniqueMode_UNIQUE_MODE_REJECT
	UniqueDebounce    = joblinev1.UniqueMode_UNIQUE_MODE_DEBOUNCE
	UniqueThrottle    = joblinev1.UniqueMode_UNIQUE_MODE_THROTTLE
	UniqueAfterActive = joblinev1.UniqueMode_UNIQUE_MODE_AFTER_ACTIVE
	UniqueSupersede   = joblinev1.UniqueMode_UNIQUE_MODE_SUPERSEDE

	StateScheduled = joblinev1.JobState_JOB_STATE_SCHEDULED
	StateBlocked   = joblinev1.JobState_JOB_STATE_BLOCKED
	StateReady     = joblinev1.JobState_JOB_STATE_READY
	StateActive    = joblinev1.JobState_JOB_STATE_ACTIVE
	StateCompleted = joblinev1.JobState_JOB_STATE_COMPLETED
	StateDead      = joblinev1.JobState_JOB_STATE_DEAD
	StateCancelled = joblinev1.JobState_JOB_STATE_CANCELLED
	StateExpired   = joblinev1.JobState_JOB_STATE_EXPIRED
	StateStale     = joblinev1.JobState_JOB_STATE_STALE

	LogDebug   = joblinev1.LogLevel_LOG_LEVEL_DEBUG
	LogInfo    = joblinev1.LogLevel_LOG_LEVEL_INFO
	LogWarning = joblinev1.LogLevel_LOG_LEVEL_WARNING
	LogError   = joblinev1.LogLevel_LOG_LEVEL_ERROR
)

// PushOptions are the options of one job, or of all jobs of a call. The zero value of each field
// means the queue's setting, and then the default given here. Options belong to the job: workers
// take them from it.
type PushOptions struct {
	// Name is the kind of work, ≤ 256 characters: a worker's handler is found by queue and name.
	Name string
	// JobKey is the idempotency key, 1 … 256 bytes: again within 24 h it returns the first job's id.
	// Not for all jobs of a call.
	JobKey string
	// Headers are ≤ 64 entries, 8 KiB together. Trace context is added to them.
	Headers map[string]string
	// ContentType of the payload; default application/json for what is not bytes.
	ContentType string
	// AckLevel says when the push is answered; default AckFsynced, or the queue's minimum. Of a
	// call, not of single jobs in it.
	AckLevel AckLevel

	// Delay is when the job becomes ready, ≤ 400 days from now; RunAt the same as a moment. One of them.
	Delay time.Duration
	RunAt time.Time
	// Priority: higher goes first. Default 0.
	Priority int32
	// LIFO puts the job before all that are ready, of its priority and name.
	LIFO bool
	// TTL: a job that still waits then is EXPIRED; ≤ 400 days, or None.
	TTL time.Duration

	// Lease is how long a worker may stay silent, 1 s … 12 h; default 30 s.
	Lease time.Duration
	// Timeout is how long one attempt may take in all, 1 s … 400 days, or None.
	Timeout time.Duration
	// MaxAttempts is how many attempts may fail, 1 … 1,000 or None (unlimited); default 3.
	MaxAttempts int
	// Backoff is the pause before the next attempt; default exponential from 1 s to 1 h ± 10 %.
	Backoff *Backoff
	// RetryUntil: no retry after this moment.
	RetryUntil time.Time
	// MaxStalls is how many lost leases are forgiven, 1 … 1,000 or None; default 3.
	MaxStalls int
	// Delivery: DeliverAtLeastOnce (default) or DeliverOnce.
	Delivery DeliveryMode

	// UniqueKey: one unfinished job a key in a queue, 1 … 256 bytes. What becomes of a second one is
	// UniqueMode (default UniqueKeep). UniqueTTL: how long the key is held at most. UniqueMaxWait: how
	// long UniqueDebounce may delay a job.
	UniqueKey     string
	UniqueMode    UniqueMode
	UniqueTTL     time.Duration
	UniqueMaxWait time.Duration

	// Group: its jobs run one at a time, in order; ≤ 256 characters. HoldOnDead keeps the group
	// waiting while its head is dead. Sticky prefers the worker that had the group's last job.
	Group      string
	HoldOnDead bool
	Sticky     bool

	// DependsOn are ids of jobs that must complete first, ≤ 1,000. OnDependencyFailure says what
	// happens if one does not; BlockTimeout how long to wait for them.
	DependsOn           []uint64
	OnDependencyFailure DependencyPolicy
	BlockTimeout        time.Duration
	// DependsOnIndexes are indexes of earlier jobs of the same PushMany.
	DependsOnIndexes []uint32

	// Limiters to pass, ≤ 4. Cost is what the job takes of them, and Slots of its worker's window; default 1.
	Limiters []string
	Cost     int32
	Slots    int32
	// Batch that the job is a member of.
	Batch uint64
	// Phases are names of the steps that the handler runs in order, ≤ 100.
	Phases []string
	// Tags are ≤ 16 words to filter by.
	Tags []string
	// Retention is how long the ended job is kept.
	Retention *Retention
	// Webhook is a URL told when the job ends.
	Webhook string
	// MinWorkerVersion: only workers of this version or a newer one get the job.
	MinWorkerVersion string
}

// Backoff is the pause before the next attempt.
type Backoff struct {
	// Fixed pauses for Base each time, instead of doubling it.
	Fixed bool
	// Base is the first pause, ≤ 24 h; default 1 s.
	Base time.Duration
	// Max is the longest pause, ≤ 24 h; default 1 h.
	Max time.Duration
	// Jitter is the share by which a pause varies, 0 … 1, or None; default 0.1.
	Jitter float64
	// Delays are the pauses one by one, the last repeated; instead of Base and Max.
	Delays []time.Duration
}

// Retention is how long an ended job is kept.
type Retention struct {
	// RemoveOnComplete and RemoveOnFail forget the job at once.
	RemoveOnComplete, RemoveOnFail bool
	// Age is how long it stays before it is STALE; DeleteAfter how long it stays after that.
	Age, DeleteAfter time.Duration
	// Count is how many newer ended jobs push it out.
	Count int64
}

// NewJob is one job of PushMany: a payload, and options of its own that override those of the call,
// field by field.
type NewJob struct {
	Payload any
	Options PushOptions
}

// Pushed is what became of one pushed job.
type Pushed struct {
	// ID of the job that the push stands for: the new one, or the one that holds its key. 0 if it was refused.
	ID uint64
	// Outcome is PushCreated, PushDuplicate or another.
	Outcome PushOutcome
	// AckLevel that was reached, never less than asked.
	AckLevel AckLevel
	// Err is the refusal of a job in a call that is not atomic; nil otherwise.
	Err error
}
