package jobline

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// JobError is why a job failed, as its worker reported it.
type JobError struct {
	// Type is the error's type, ≤ 256 characters.
	Type string
	// Message is one sentence, cut at 4 KiB.
	Message string
	// Stack is a stack trace, cut at 16 KiB; "" without one.
	Stack string
	// Details are anything a program wants to read, cut at 16 KiB.
	Details []byte
}

// JobEnd is how one job ended.
type JobEnd struct {
	ID uint64
	// State is StateCompleted, StateDead, StateCancelled or StateExpired; 0 if NotFound.
	State JobState
	// Result is what the handler returned: JSON, or bytes.
	Result []byte
	// Reason is why it ended other than well.
	Reason EndReason
	// Error is the last error; nil without one.
	Error *JobError
	// EndedAt is when it ended.
	EndedAt time.Time
	// NotFound: there is no such job, or it was deleted meanwhile.
	NotFound bool
	// ResultHidden: there is a result, which the caller may not see without the verb read_payload.
	ResultHidden bool
}

func endOf(m *joblinev1.WaitResponse) JobEnd {
	end := JobEnd{ID: m.GetId(), State: m.GetState(), Result: m.GetResult(), Reason: m.GetReason(), NotFound: m.GetNotFound(), ResultHidden: m.GetResultHidden()}
	if e := m.GetError(); e != nil {
		end.Error = &JobError{Type: e.GetType(), Message: e.GetMessage(), Stack: e.GetStack(), Details: e.GetDetails()}
	}
	if m.GetEndedAt() != nil {
		end.EndedAt = m.GetEndedAt().AsTime()
	}
	return end
}

// Err returns nil if the job completed, and the error that says how it ended if not: ErrJobDead,
// ErrJobCancelled, ErrJobExpired or ErrJobNotFound.
func (e *JobEnd) Err() error {
	if e.State == StateCompleted {
		return nil
	}
	if e.NotFound {
		why := "or its retention has passed"
		if e.Reason != 0 {
			why = "it was deleted before it ended"
		}
		err := newError(ErrJobNotFound, "there is no job %d: %s", e.ID, why)
		err.ID = e.ID
		return err
	}
	kinds := map[JobState]error{StateDead: ErrJobDead, StateCancelled: ErrJobCancelled, StateExpired: ErrJobExpired}
	of, ok := kinds[e.State]
	if !ok {
		of = ErrNotDone
	}
	state := strings.ToLower(strings.TrimPrefix(e.State.String(), "JOB_STATE_"))
	reason := strings.TrimPrefix(e.Reason.String(), "END_REASON_")
	message := fmt.Sprintf("job %d is %s (%s)", e.ID, state, strings.ToLower(reason))
	if e.Error != nil {
		message += shortLine(fmt.Sprintf(": %s: %s", e.Error.Type, e.Error.Message)) // it is the worker's
	}
	err := newError(of, "%s", message)
	err.ID, err.Reason, err.End = e.ID, reason, e
	return err
}

// ResultOf returns the result of a job that completed as a type: bytes for []byte, else from JSON.
// It returns what Err returns for any other, ErrCodec for a result of another type, and ErrPermissionDenied for one that
// the caller may not see.
func ResultOf[R any](end JobEnd) (R, error) {
	var result R
	if err := end.Err(); err != nil {
		return result, err
	}
	if end.ResultHidden {
		return result, hiddenResult(end.ID)
	}
	return result, decode(end.Result, &result)
}

// hiddenResult is the error of a result that the server has left out.
func hiddenResult(id uint64) *Error {
	err := newError(ErrPermissionDenied, "the result of job %d needs the verb read_payload for its queue", id)
	err.Code, err.Reason, err.ID = codes.PermissionDenied, "RESULT_HIDDEN", id
	return err
}
