package jobline

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is every error of this package: what a server refused, what it did not answer, and how a
// job ended that was waited for.
type Error struct {
	// Message names the request, the reason, and what to do.
	Message string
	// Code is the gRPC status; codes.OK if no server was involved.
	Code codes.Code
	// Reason is the server's reason, such as QUEUE_FULL; "" if it gave none.
	Reason string
	// Field is the path of the first field at fault, such as jobs[3].options.lease; "" if none is.
	Field string
	// ID is the job that the error is about; 0 if it is about none.
	ID uint64
	// RequestID repeats a push of unknown outcome, see PushManyOptions.RequestID; "" if the push
	// shared its call with others: give such a push a JobKey if it must be repeatable by hand.
	RequestID string
	// RetryAfter is the time after which the server suggests another try, ≤ 1 h; 0 if it named none.
	RetryAfter time.Duration
	// End is how the job ended, for ErrNotDone.
	End *JobEnd

	class *class
	cause error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, such as the error of a context; nil without one.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the error belongs to a class, such as ErrNotFound, directly or through a
// narrower one, such as ErrJobNotFound.
func (e *Error) Is(target error) bool {
	for c := e.class; c != nil; c = c.parent {
		if target == error(c) {
			return true
		}
	}
	return false
}

// Retryable reports whether the same call may succeed later, after RetryAfter if that is set.
func (e *Error) Retryable() bool {
	if e.class == ErrInternal.(*class) {
		// Without a reason it comes from something between, such as a proxy.
		return e.Reason == ""
	}
	return e.class.isRetryable()
}

// Definite reports whether nothing was stored or changed.
func (e *Error) Definite() bool {
	return e.Is(ErrRefused) || e.Is(ErrNotConnected) || e.Is(ErrNoToken)
}

// GRPCStatus returns the status, for status.FromError and status.Code.
func (e *Error) GRPCStatus() *status.Status {
	if e.Code == codes.OK {
		return status.New(codes.Unknown, e.Message)
	}
	return status.New(e.Code, e.Message)
}

// Retryable reports whether an error of this package says that the same call may succeed later.
func Retryable(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Retryable()
}

// class is a class of errors, compared by identity.
type class struct {
	text      string
	parent    *class
	retryable *bool
}

func (c *class) Error() string { return "jobline: " + c.text }

// Unwrap has a class be of those that it is of, where a fake of a test returns one as its error.
func (c *class) Unwrap() error {
	if c.parent == nil {
		return nil
	}
	return c.parent
}

func (c *class) isRetryable() bool {
	for ; c != nil; c = c.parent {
		if c.retryable != nil {
			return *c.retryable
		}
	}
	return false
}

func kind(text string, parent error) error {
	c := &class{text: text}
	if parent != nil {
		c.parent = parent.(*class)
	}
	return c
}

func kindOf(retryable bool, text string, parent error) error {
	c := kind(text, parent).(*class)
	c.retryable = &retryable
	return c
}

func newError(of error, format string, arguments ...any) *Error {
	return &Error{class: of.(*class), Message: fmt.Sprintf(format, arguments...)}
}

// unexpected returns the error of an answer that the protocol does not have.
func unexpected(format string, arguments ...any) *Error {
	err := newError(ErrInternal, format, arguments...)
	err.Reason = "UNEXPECTED_ANSWER"
	return err
}

func (e *Error) because(cause error) *Error {
	e.cause = cause
	return e
}

func (e *Error) about(field string) *Error {
	e.Field = field
	return e
}

func refuse(field, format string, arguments ...any) *Error {
	return newError(ErrInvalidArgument, field+": "+format, arguments...).about(field)
}
