package jobline

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	errorDomain = "jobline"
	// The longest pause that a server may ask for.
	retryAfterMax = time.Hour
	// What is kept, and logged, of a text of a server: it may be as large as a message.
	statusTextMax = 4 << 10
)

// shortLine returns a text of the server as a line of bounded length.
func shortLine(text string) string { return oneLine(cut(text, statusTextMax)) }

// errorOf returns the typed error of what gRPC returned; an *Error as it is.
func errorOf(ctx context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if isClosing(err) {
		return newError(ErrClosed, "the client is closed").because(err)
	}
	from, _ := status.FromError(err)
	e := &Error{Code: from.Code(), Message: shortLine(sentenceOf(from.Message()))}
	readDetails(e, from)
	found, ok := classByReason[e.Reason]
	if !ok {
		found, ok = classByCode[e.Code]
	}
	if !ok {
		found = ErrInternal
	}
	e.class = found.(*class)
	if e.Is(ErrResourceExhausted) && e.Reason == "" {
		// gRPC's own limits of message size: the same call never succeeds.
		e.class = ErrTooLarge.(*class)
	}
	if ctx != nil && ctx.Err() != nil && (e.Code == codes.Canceled || e.Code == codes.DeadlineExceeded) {
		e.cause = context.Cause(ctx)
	}
	return e
}

// isClosing reports a call on a channel that was closed. Its code is that of a cancelled call, which may be repeated.
func isClosing(err error) bool {
	//lint:ignore SA1019 the code alone does not tell it from a call that its caller has cancelled
	return errors.Is(err, grpc.ErrClientConnClosing)
}

func readDetails(e *Error, from *status.Status) {
	for _, detail := range from.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() != errorDomain {
				continue
			}
			e.Reason = shortLine(d.GetReason())
			e.ID, _ = strconv.ParseUint(d.GetMetadata()["id"], 10, 64)
		case *errdetails.BadRequest:
			if violations := d.GetFieldViolations(); len(violations) > 0 && e.Field == "" {
				e.Field = shortLine(violations[0].GetField())
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = min(max(d.GetRetryDelay().AsDuration(), 0), retryAfterMax)
		}
	}
}

// sentenceOf shortens what gRPC reports of a connection that failed.
func sentenceOf(message string) string {
	if !strings.HasPrefix(message, "connection error: desc = ") {
		return message
	}
	inner := strings.Trim(strings.TrimPrefix(message, "connection error: desc = "), `"`)
	inner = strings.TrimPrefix(inner, "transport: ")
	return "cannot connect: " + strings.TrimPrefix(inner, "Error while dialing: ")
}

// unknownOutcome returns the error of a write after some tries: a definite refusal as it is,
// anything else as ErrOutcomeUnknown.
func unknownOutcome(e *Error, requestID string, tries int) *Error {
	if isDefinite(e, tries) {
		return e
	}
	unknown := newError(ErrOutcomeUnknown, "the outcome is not known: %s", e.Message).because(e)
	unknown.Code, unknown.Reason, unknown.Field = e.Code, e.Reason, e.Field
	unknown.ID, unknown.RetryAfter = e.ID, e.RetryAfter
	unknown.RequestID = requestID
	return unknown
}

// isDefinite reports whether nothing was stored. After several tries, the first of which may have
// been stored, only a reply of the server to this very request proves it.
func isDefinite(e *Error, tries int) bool {
	if !e.Definite() {
		return false
	}
	ofThisTry := e.Is(ErrClosed) || e.Is(ErrPermissionDenied) || e.Is(ErrUnauthenticated) || e.Is(ErrNotConnected) ||
		e.Is(ErrNoToken)
	return tries <= 1 || !ofThisTry
}
