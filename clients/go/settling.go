package jobline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Delay of a job whose name has no handler here. Another worker may have one; without the delay the
	// job would return at once.
	unhandledDelay = 5 * time.Second
	errorTypeMax   = 256
	stackMax       = 16 << 10
)

// settle settles a job by what its handler returned.
func (r *workerRun) settle(ctx context.Context, job *LeasedJob, result encoded, err error) {
	if err = answering(err); err == nil {
		if err = job.seal(&result); err == nil {
			isHeld := job.job.IsHeld()
			r.session.ack(job.job, result.data)
			if isHeld {
				r.noteSuccess()
			}
			return
		}
	}
	if errors.Is(err, ErrSealed) {
		r.settleUnread(job, err)
		return
	}
	if outcome := outcomeIn(err); outcome != nil {
		r.settleOutcome(job, outcome, err)
		return
	}
	if isStop(ctx, err) {
		r.settleStopped(ctx, job, err)
		return
	}
	r.fail(job, err, nil)
}

// answering returns an error that can be asked for all that is asked here. One that panics then, such as a nil *T as an
// error, would end the program: nothing of the handler's is above it that could recover.
func answering(err error) (safe error) {
	if err == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			odd := &panicError{value: fmt.Sprintf("the handler's error, a %T, panics: %v", err, value), stack: string(debug.Stack())}
			if panicked, ok := err.(*panicError); ok { //nolint:errorlint // nothing that it wraps may be asked
				odd.value, odd.stack = fmt.Sprintf("a value of type %T, which panics: %v", panicked.value, value), panicked.stack
			}
			safe = odd
		}
	}()
	_ = errors.Is(err, ErrSealed)
	_ = isStopError(err)
	_ = errorMessage(err)
	if outcome := outcomeIn(err); outcome != nil && outcome.cause != nil {
		_ = errorMessage(outcome.cause)
	}
	return err
}

// isStop reports whether a handler ended because it was asked to.
func isStop(ctx context.Context, err error) bool {
	return ctx.Err() != nil && isStopError(err)
}

func isStopError(err error) bool {
	var reason StopReason
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &reason)
}

// settleUnread settles a job of which something cannot be opened, or sealed: no later attempt could, unless the
// codec or the key ring is at fault.
func (r *workerRun) settleUnread(job *LeasedJob, err error) {
	if !errors.Is(err, ErrSealed) {
		r.fail(job, err, nil)
		return
	}
	m := errorMessage(err)
	m.Type = "CodecError"
	if errors.Is(err, ErrKeyErased) {
		m.Type = "KeyErased"
	}
	r.log.Warn("a job cannot be read", "job", job.ID, "queue", job.Queue, "name", job.Name, "type", m.Type, "error", m.Message)
	r.session.settle(failItem(job, m, joblinev1.FailAction_FAIL_ACTION_DEAD))
}

func (r *workerRun) settleOutcome(job *LeasedJob, outcome *Outcome, err error) {
	switch outcome.kind {
	case outcomeRetry:
		r.fail(job, or(outcome.cause, err), durationpb.New(outcome.after))
	case outcomeSnooze:
		r.session.settle(&joblinev1.ReleaseItem{
			Id: job.ID, Delivery: job.Delivery, Delay: span(outcome.after),
			Why: joblinev1.ReleaseReason_RELEASE_REASON_SNOOZE,
		})
	case outcomeLimited:
		r.session.settle(&joblinev1.ReleaseItem{
			Id: job.ID, Delivery: job.Delivery, Until: timestamppb.New(outcome.until), Limiter: outcome.limiter,
			Why: joblinev1.ReleaseReason_RELEASE_REASON_LIMITED,
		})
	case outcomeCancel:
		r.session.settle(failItem(job, reasonOf("Cancel", outcome), joblinev1.FailAction_FAIL_ACTION_CANCEL))
	case outcomeDead:
		r.session.settle(failItem(job, reasonOf("Dead", outcome), joblinev1.FailAction_FAIL_ACTION_DEAD))
	case outcomeWait:
		r.flows.push(job, outcome.children)
	}
}

// reasonOf returns the reason of an outcome as an error, with what led to it.
func reasonOf(kind string, outcome *Outcome) *joblinev1.JobError {
	if outcome.cause == nil {
		return &joblinev1.JobError{Type: kind, Message: cut(outcome.reason, messageBytesCut)}
	}
	m := errorMessage(outcome.cause)
	if outcome.reason != "" {
		m.Message = cut(outcome.reason+": "+m.Message, messageBytesCut)
	}
	return m
}

// settleStopped settles a job whose handler ended because it was asked to.
func (r *workerRun) settleStopped(ctx context.Context, job *LeasedJob, err error) {
	reason := job.stopReason.Load()
	switch {
	case reason == nil: // its own deadline, before the server noticed
		if context.Cause(ctx) == StopTimeout {
			m := errorMessage(err)
			m.Type = "timeout"
			r.settleFailed(job, failItem(job, m, joblinev1.FailAction_FAIL_ACTION_RETRY))
			return
		}
		r.fail(job, err, nil)
	case *reason == StopCancelled:
		r.session.settle(failItem(job, nil, joblinev1.FailAction_FAIL_ACTION_CANCEL))
	case *reason == StopWorker && job.job.IsOnce():
		// It has begun: whether it may run again is a matter of its attempts.
		m := &joblinev1.JobError{Type: "Interrupted", Message: "the worker stopped while the job ran"}
		r.session.settle(failItem(job, m, joblinev1.FailAction_FAIL_ACTION_RETRY))
	case *reason == StopWorker:
		r.session.settle(stream.Interrupted(job.ID, job.Delivery))
	}
	// Otherwise the lease is gone, and there is nothing to settle.
}

// fail fails the attempt.
func (r *workerRun) fail(job *LeasedJob, err error, after *durationpb.Duration) {
	m := errorMessage(err)
	said := []any{"job", job.ID, "queue", job.Queue, "name", job.Name, "attempt", job.Attempt, "type", m.Type, "error", m.Message}
	if m.Stack != "" { // of a panic: errors have none
		said = append(said, "stack", m.Stack)
	}
	r.log.Warn("attempt failed", said...)
	item := failItem(job, m, joblinev1.FailAction_FAIL_ACTION_RETRY)
	item.RetryAfter = after
	r.settleFailed(job, item)
}

// settleFailed settles a job whose attempt has failed, and notes that.
func (r *workerRun) settleFailed(job *LeasedJob, item *joblinev1.FailItem) {
	isHeld := job.job.IsHeld() // one whose lease is lost has not failed, or is noted already
	r.session.settle(item)
	if isHeld {
		r.noteFailure()
	}
}

func failItem(job *LeasedJob, err *joblinev1.JobError, then joblinev1.FailAction) *joblinev1.FailItem {
	return &joblinev1.FailItem{Id: job.ID, Delivery: job.Delivery, Error: err, Then: then}
}

// errorMessage returns an error as operators see it. Its type is what ErrorType() returns, if it has
// that method, else that of the innermost error with a type of its own.
func errorMessage(err error) *joblinev1.JobError {
	m := &joblinev1.JobError{Type: cut(typeOf(err), errorTypeMax), Message: cut(err.Error(), messageBytesCut)}
	var panicked *panicError
	if errors.As(err, &panicked) {
		m.Stack = cut(panicked.stack, stackMax)
	}
	return m
}

func typeOf(err error) string {
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		return named.ErrorType()
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		return "panic"
	}
	for ; err != nil; err = errors.Unwrap(err) {
		name := strings.TrimPrefix(reflect.TypeOf(err).String(), "*")
		switch name {
		case "errors.errorString", "fmt.wrapError", "fmt.wrapErrors", "errors.joinError":
		case "jobline.Outcome", "jobline.Error":
			return strings.TrimPrefix(name, "jobline.")
		default:
			return name
		}
	}
	return "error"
}
