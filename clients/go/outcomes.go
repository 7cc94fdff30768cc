package jobline

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is what a handler returns as its error to say what becomes of its job: one of Retry, Snooze,
// Cancel, Dead, RateLimited and WaitFor. Any other error fails the attempt. It may be wrapped.
type Outcome struct {
	kind     outcomeKind
	after    time.Duration
	until    time.Time
	limiter  string
	reason   string
	children []FlowJob
	cause    error
}

type outcomeKind int

const (
	outcomeRetry outcomeKind = iota
	outcomeSnooze
	outcomeCancel
	outcomeDead
	outcomeLimited
	outcomeWait
)

// Retry fails this attempt, and tries again after a pause of the handler's choice, at most 24 h. It uses
// an attempt, as any failure does. Because gives the error that operators see.
func Retry(after time.Duration) *Outcome {
	return &Outcome{kind: outcomeRetry, after: min(max(after, 0), 24*time.Hour)}
}

// Snooze gives the job back for a time, at most 400 days. It uses no attempt; ≤ 1,000 times a job.
func Snooze(after time.Duration) *Outcome {
	return &Outcome{kind: outcomeSnooze, after: min(max(after, 0), dayMax)}
}

// Cancel ends the job as CANCELLED; the reason is kept as its error.
func Cancel(reason string) *Outcome { return &Outcome{kind: outcomeCancel, reason: reason} }

// Dead sends the job to the dead letters, whatever attempts it has left; the reason is kept as its
// error.
func Dead(reason string) *Outcome { return &Outcome{kind: outcomeDead, reason: reason} }

// RateLimited gives the job back until then, and with it all others that count towards the limiter,
// one of the job's PushOptions.Limiters. With "" it is the job's group, or its queue if it has none.
// It uses no attempt.
func RateLimited(limiter string, until time.Time) *Outcome {
	return &Outcome{kind: outcomeLimited, limiter: limiter, until: until}
}

// WaitFor pushes jobs, with their children, and has the job wait for them: it is BLOCKED and holds no
// place of the worker. When they have ended its handler is called anew, with its checkpoint, the same
// attempt, and their results in LeasedJob.Children. It uses no attempt; a job has ≤ 1,000 children.
func WaitFor(children ...FlowJob) *Outcome {
	return &Outcome{kind: outcomeWait, children: children}
}

// Because returns the outcome with the error that led to it, for operators and errors.Is.
func (o *Outcome) Because(cause error) *Outcome {
	caused := *o
	caused.cause = cause
	return &caused
}

// Error says what becomes of the job, and why.
func (o *Outcome) Error() string {
	var what string
	switch o.kind {
	case outcomeRetry:
		what = fmt.Sprintf("retry after %s", o.after)
	case outcomeSnooze:
		what = fmt.Sprintf("snoozed for %s", o.after)
	case outcomeCancel:
		what = "cancelled"
	case outcomeDead:
		what = "dead"
	case outcomeLimited:
		what = fmt.Sprintf("limited until %s", o.until.Format(time.RFC3339))
	case outcomeWait:
		what = fmt.Sprintf("waits for %d children", len(o.children))
	}
	for _, why := range []string{o.reason, messageOf(o.cause)} {
		if why != "" {
			what += ": " + why
		}
	}
	return what
}

// Unwrap returns the error that led to it.
func (o *Outcome) Unwrap() error { return o.cause }

// StopReason is why a handler should stop: context.Cause of its context.
type StopReason string

// Why a handler's context was cancelled.
const (
	// StopCancelled: somebody cancelled the job.
	StopCancelled StopReason = "the job was cancelled"
	// StopTimeout: the attempt took too long.
	StopTimeout StopReason = "the attempt took too long"
	// StopLeaseLost: another worker may have the job; what this handler returns is dropped.
	StopLeaseLost StopReason = "the lease is lost"
	// StopQueueDeleted: the queue was deleted.
	StopQueueDeleted StopReason = "the queue was deleted"
	// StopWorker: the worker stops, and its soft stop time has passed; the job is released.
	StopWorker StopReason = "the worker stops"
)

// Error returns the reason in words.
func (s StopReason) Error() string { return string(s) }

// panicError is a panic of a handler, as the error of its attempt.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprint(p.value) }

// Unwrap returns the error that was the value of the panic, if it was one.
func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func outcomeIn(err error) *Outcome {
	var found *Outcome
	errors.As(err, &found)
	return found
}
