package jobline

import (
	"maps"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Header keys of the pushes in one call together: each key is a column with a value for every push.
const headerKeysMax = 32

// fitColumns reports whether columns can hold these headers: in a column, "" is no value.
func fitColumns(headers map[string]string) bool {
	if len(headers) > headerKeysMax {
		return false
	}
	for key, value := range headers {
		if key == "" || value == "" {
			return false
		}
	}
	return true
}

// putColumns puts what each job has of its own into a request of payloads. Headers that all share go
// into the options.
func putColumns(request *joblinev1.PushRequest, owns []own) {
	hasJobKeys, hasUniqueKeys, hasGroups, hasHeaders := false, false, false, false
	for i := range owns {
		hasJobKeys = hasJobKeys || owns[i].jobKey != ""
		hasUniqueKeys = hasUniqueKeys || owns[i].uniqueKey != ""
		hasGroups = hasGroups || owns[i].group != ""
		hasHeaders = hasHeaders || len(owns[i].headers) > 0
	}
	if hasJobKeys {
		request.JobKeys = column(owns, func(o *own) string { return o.jobKey })
	}
	if hasUniqueKeys {
		request.UniqueKeys = column(owns, func(o *own) string { return o.uniqueKey })
	}
	if hasGroups {
		request.Groups = column(owns, func(o *own) string { return o.group })
	}
	if hasHeaders {
		putHeaders(request, owns)
	}
}

func column(owns []own, of func(*own) string) []string {
	values := make([]string, len(owns))
	for i := range owns {
		values[i] = of(&owns[i])
	}
	return values
}

func putHeaders(request *joblinev1.PushRequest, owns []own) {
	shared := maps.Clone(owns[0].headers)
	keys := map[string]struct{}{}
	for i := range owns {
		for key := range owns[i].headers {
			keys[key] = struct{}{}
		}
		maps.DeleteFunc(shared, func(key, value string) bool { return owns[i].headers[key] != value })
	}
	for key := range keys {
		if _, ok := shared[key]; ok {
			continue
		}
		values := column(owns, func(o *own) string { return o.headers[key] })
		request.HeaderColumns = append(request.HeaderColumns, &joblinev1.HeaderColumn{Key: key, Values: values})
	}
	if len(shared) == 0 {
		return
	}
	if request.Options == nil {
		request.Options = &joblinev1.JobOptions{}
	}
	if request.Options.Headers == nil {
		request.Options.Headers = map[string]string{}
	}
	maps.Copy(request.Options.Headers, shared)
}

var columnField = regexp.MustCompile(`^(payloads|job_keys|unique_keys|groups)(\[\d+\])$`)

// asJobs names the field of a refusal as callers know it: that jobs travelled in columns is not
// their concern.
func asJobs(e *Error) *Error {
	match := columnField.FindStringSubmatch(e.Field)
	if match == nil {
		return e
	}
	of := map[string]string{
		"payloads": ".payload", "job_keys": ".job_key",
		"unique_keys": ".options.unique_key", "groups": ".options.group",
	}[match[1]]
	renamed := *e
	renamed.Field = "jobs" + match[2] + of
	renamed.Message = strings.Replace(e.Message, e.Field+": ", renamed.Field+": ", 1)
	return &renamed
}

// outcomesOf returns what became of each of count pushed jobs, in order; keysOf names the keys of one, for its refusal.
func outcomesOf(response *joblinev1.PushResponse, queue string, count int, keysOf func(int) (jobKey, uniqueKey string)) ([]Pushed, error) {
	pushed := make([]Pushed, count)
	exceptions := map[int32]*joblinev1.PushException{}
	created := count
	for _, one := range response.GetExceptions() {
		if one.GetIndex() < 0 || int(one.GetIndex()) >= count {
			continue
		}
		exceptions[one.GetIndex()] = one
		if !isStored(one.GetOutcome()) {
			created--
		}
	}
	if int(response.GetCount()) != created {
		return nil, unexpected("%d jobs were pushed, and the answer is of %d", count, response.GetCount())
	}
	next := response.GetFirstId()
	for i := range pushed {
		pushed[i] = Pushed{ID: next, Outcome: PushCreated, AckLevel: response.GetAckLevel()}
		if one := exceptions[int32(i)]; one != nil {
			pushed[i].Outcome = one.GetOutcome()
			if !isStored(one.GetOutcome()) {
				pushed[i].ID = one.GetId()
				if one.GetOutcome() == PushRefused {
					jobKey, uniqueKey := keysOf(i)
					pushed[i].Err = refusalOfOne(queue, jobKey, uniqueKey, one.GetReason())
				}
				continue
			}
		}
		next++
	}
	return pushed, nil
}

// isStored reports whether a job was created, though it may have taken another one's place.
func isStored(outcome PushOutcome) bool {
	switch outcome {
	case PushCreated, PushReplaced, PushDebounced, PushParked:
		return true
	}
	return false
}

// refusalOfOne returns the error of a job that was refused alone, for this reason.
func refusalOfOne(queue, jobKey, uniqueKey, reason string) error {
	var err *Error
	switch reason {
	case "IDEMPOTENCY_MISMATCH":
		err = newError(ErrIdempotencyMismatch, "the job key %q is known in queue %q with another payload", jobKey, queue)
	case "UNIQUE_KEY_HELD":
		err = newError(ErrUniqueKeyHeld, "another job of queue %q holds the unique key %q", queue, uniqueKey)
	case "JOB_AWAITED":
		err = newError(ErrFailedPrecondition, "others depend on the job of queue %q that has the unique key %q", queue, uniqueKey)
	default:
		err = newError(ErrAlreadyExists, "the server refused the job for its keys: %s", reason)
	}
	err.Code, err.Reason = codes.AlreadyExists, reason
	if err.Is(ErrFailedPrecondition) {
		err.Code = codes.FailedPrecondition
	}
	return err
}
