package jobline

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jobline/jobline/clients/go/internal/pauses"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// One call waits at most this long; then another one follows.
const waitMax = time.Hour

// Wait yields how jobs end, each as it ends; ended ones come at once. Ids are ≤ 10,000. A broken
// connection is opened again. It ends when all have ended, or with ErrWaitTimeout when ctx ends (the
// jobs go on), or with a refusal. A result that cannot be opened is yielded as such an error (ErrCodec) beside its
// end. Waits for up to 100 jobs share calls, and not the metadata of their contexts, unless that has an authorization: a
// client may have any number.
func (c *Client) Wait(ctx context.Context, ids ...uint64) iter.Seq2[JobEnd, error] {
	return func(yield func(JobEnd, error) bool) {
		ctx, cancel := byMovedClock(ctx, c.link.target)
		defer cancel()
		responses := c.responses(ctx, ids, false)
		if len(ids) <= sharedIDsMax && !hasAuthorization(ctx) {
			responses = c.sharedResponses(ctx, ids)
		}
		for response, err := range responses {
			if err != nil {
				yield(JobEnd{}, err)
				return
			}
			end := endOf(response)
			end.Result, _, err = c.codec.Open(end.Result)
			if !yield(end, aboutJob(err, end.ID)) {
				return
			}
		}
	}
}

// WaitOne returns how one job ended: ErrWaitTimeout if it has not before ctx ends.
func (c *Client) WaitOne(ctx context.Context, id uint64) (JobEnd, error) {
	for end, err := range c.Wait(ctx, id) {
		return end, err
	}
	return JobEnd{}, newError(ErrInternal, "the server said nothing of job %d", id)
}

// Partial is a piece of the result of a job that runs.
type Partial struct {
	ID uint64
	// Delivery of the attempt that sent it; another one means that the job began again.
	Delivery uint64
	// Number grows by 1 with each piece of an attempt; a gap means that pieces were dropped.
	Number uint64
	Data   []byte
}

// Partials yields the pieces of a job's result that its handler sends with [LeasedJob.Partial], from
// the oldest that the server still has, until the job has ended; WaitOne says how then. It ends with
// ErrWaitTimeout when ctx ends, and with ErrJobNotFound if there is no such job.
func (c *Client) Partials(ctx context.Context, id uint64) iter.Seq2[Partial, error] {
	return func(yield func(Partial, error) bool) {
		ctx, cancel := byMovedClock(ctx, c.link.target)
		defer cancel()
		last := Partial{}
		for response, err := range c.responses(ctx, []uint64{id}, true) {
			if err == nil && response.GetNotFound() {
				end := endOf(response)
				err = end.Err()
			}
			if err == nil && response.GetResultHidden() && response.GetPartialNumber() > 0 {
				err = hiddenResult(id)
			}
			if err != nil {
				yield(Partial{}, err)
				return
			}
			piece := Partial{response.GetId(), response.GetPartialDelivery(), response.GetPartialNumber(), response.GetPartial()}
			isRepeated := piece.Delivery == last.Delivery && piece.Number <= last.Number
			if piece.Number == 0 || isRepeated { // the end of the job; or a piece from before a reconnect
				continue
			}
			last = piece
			piece.Data, _, err = c.codec.Open(piece.Data)
			if !yield(piece, aboutJob(err, piece.ID)) {
				return
			}
		}
	}
}

// sharedResponses yields the responses to a wait that shares its calls with others.
func (c *Client) sharedResponses(ctx context.Context, ids []uint64) iter.Seq2[*joblinev1.WaitResponse, error] {
	return func(yield func(*joblinev1.WaitResponse, error) bool) {
		if err := c.link.reach(ctx); err != nil {
			yield(nil, err)
			return
		}
		wait := c.waits.join(ids)
		defer c.waits.leave(wait)
		for {
			isLate := ctx.Err() != nil // before what has come is taken, so that an end of this moment counts
			ended, err, isOver := c.waits.news(wait)
			for _, response := range ended {
				if !yield(response, nil) {
					return
				}
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case isOver:
				return
			case isLate:
				c.late(ctx, c.waits.leave(wait), yield)
				return
			}
			select {
			case <-wait.news:
			case <-ctx.Done():
			}
		}
	}
}

// responses yields the responses to a wait, over broken connections, until all jobs have ended.
func (c *Client) responses(ctx context.Context, ids []uint64, partials bool) iter.Seq2[*joblinev1.WaitResponse, error] {
	return func(yield func(*joblinev1.WaitResponse, error) bool) {
		if err := c.link.reach(ctx); err != nil {
			yield(nil, err)
			return
		}
		left, renewals := setOf(ids), 0
		check := func(response *joblinev1.WaitResponse) error { return checkAnswer(response, left, partials) }
		for tries := 1; len(left) > 0; tries++ {
			timeout := waitMax
			if deadline, ok := ctx.Deadline(); ok {
				timeout = min(timeout, max(time.Until(deadline), 0))
			}
			hadOne, err := c.waitOnce(ctx, slices.Collect(maps.Keys(left)), timeout, partials, check, func(response *joblinev1.WaitResponse) bool {
				if response.GetPartialNumber() == 0 {
					delete(left, response.GetId())
				}
				return yield(response, nil)
			})
			failed := (*Error)(nil)
			switch isOne := errors.As(err, &failed); {
			case errors.Is(err, errStopped):
				return
			case len(left) == 0:
				return
			case ctx.Err() != nil:
				c.late(ctx, left, yield)
				return
			case hadOne || (isOne && failed.Retryable()):
				renewals = 0
			}
			if err != nil && !Retryable(err) {
				if renewals++; failed == nil || !c.link.shows.mayRenew(failed) || renewals >= renewalsMax {
					yield(nil, err)
					return
				}
			}
			if hadOne {
				tries = 0
			}
			// Also after a call that ended well without all answers, or it would be repeated at once for ever.
			pause := pauses.Retry.After(max(tries, 1))
			if failed != nil {
				pause = max(pause, failed.RetryAfter)
			}
			sleep(ctx, pause)
		}
	}
}

var errStopped = errors.New("the reader stopped")

func setOf(ids []uint64) map[uint64]struct{} {
	set := make(map[uint64]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return set
}

// waitOnce makes one call; take returns false to stop it.
func (c *Client) waitOnce(ctx context.Context, ids []uint64, timeout time.Duration, partials bool, check func(*joblinev1.WaitResponse) error, take func(*joblinev1.WaitResponse) bool) (hadOne bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+c.link.timeout)
	defer cancel()
	request := &joblinev1.WaitRequest{Ids: ids, Timeout: durationpb.New(timeout), Partials: partials}
	stream, err := c.jobs.Wait(ctx, request)
	if err != nil {
		return false, err
	}
	for ; ; hadOne = true {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return hadOne, nil
		}
		if err == nil {
			err = check(response)
		}
		if err != nil {
			return hadOne, err
		}
		if !take(response) {
			return hadOne, errStopped
		}
	}
}

// checkAnswer returns an error for an answer that is not about a job that is waited for, or says no end.
func checkAnswer(response *joblinev1.WaitResponse, left map[uint64]struct{}, partials bool) error {
	if _, isAsked := left[response.GetId()]; !isAsked {
		return unexpected("the server answers for job %d, which is not waited for", response.GetId())
	}
	if response.GetPartialNumber() > 0 {
		if !partials {
			return unexpected("the server answers with a piece of job %d, which was not asked for", response.GetId())
		}
		return nil
	}
	switch response.GetState() {
	case StateCompleted, StateDead, StateCancelled, StateExpired:
		return nil
	}
	if response.GetNotFound() {
		return nil
	}
	return unexpected("the server answers that job %d has ended, in the state %v", response.GetId(), response.GetState())
}

// late ends a wait whose context has ended. If that is by the clock of a test's server, jobs may have ended before
// it: the server knows.
func (c *Client) late(ctx context.Context, left map[uint64]struct{}, yield func(*joblinev1.WaitResponse, error) bool) {
	if errors.Is(context.Cause(ctx), errMoved) {
		check := func(response *joblinev1.WaitResponse) error { return checkAnswer(response, left, false) }
		_, err := c.waitOnce(context.WithoutCancel(ctx), slices.Collect(maps.Keys(left)), 0, false, check, func(response *joblinev1.WaitResponse) bool {
			delete(left, response.GetId())
			return yield(response, nil)
		})
		if errors.Is(err, errStopped) || len(left) == 0 {
			return
		}
	}
	yield(nil, timedOut(ctx, left))
}

func timedOut(ctx context.Context, left map[uint64]struct{}) error {
	for id := range left {
		err := newError(ErrWaitTimeout, "job %d has not ended in time, and goes on", id)
		if len(left) > 1 {
			err = newError(ErrWaitTimeout, "%d jobs, such as %d, have not ended in time, and go on", len(left), id)
		}
		err.ID = id
		return err.because(context.Cause(ctx))
	}
	return nil
}
