package jobline

import (
	"context"
	"maps"
	"reflect"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jobline/jobline/clients/go/internal/pauses"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Share of a push's time that one try may take, and its longest time: an answer that is lost leaves
// time for others, and a server that hangs is noticed.
const (
	tryShare = 3
	tryMax   = 5 * time.Second
)

// Push pushes one job and returns when the ack level is reached. The payload is bytes as they are,
// or any value as JSON, ≤ 10 MiB. Options may be nil.
//
// Pushes made at the same time share one call; those of one queue and the same options, whatever
// their headers, keys and groups, keep their order. An answer that is lost is asked for again, and
// nothing is stored twice. They share no metadata of their contexts: one with an authorization has a call of its own.
//
// It returns ErrBufferFull, ErrInvalidArgument, ErrQueueFull and other refusals (nothing was stored),
// or ErrOutcomeUnknown when the client's timeout or ctx ended without a definite answer.
func (c *Client) Push(ctx context.Context, queue string, payload any, options *PushOptions) (Pushed, error) {
	out, err := outgoing(queue, payload, options)
	if err != nil {
		return Pushed{}, err
	}
	if c.middleware == nil && !c.tracing.isOn() {
		return c.pushOne(ctx, out)
	}
	pushed, err := c.through(ctx, []*Outgoing{out}, func(ctx context.Context, jobs []*Outgoing) ([]Pushed, error) {
		one, err := c.pushOne(ctx, jobs[0])
		return []Pushed{one}, err
	})
	if err != nil {
		return Pushed{}, err
	}
	return pushed[0], nil
}

func (c *Client) pushOne(ctx context.Context, out *Outgoing) (Pushed, error) {
	if hasAuthorization(ctx) {
		pushed, err := c.pushMany(ctx, []*Outgoing{out}, &PushManyOptions{})
		if err != nil {
			return Pushed{}, err
		}
		return pushed[0], nil
	}
	sealed, err := c.codec.sealJob(out, "")
	if err != nil {
		return Pushed{}, err
	}
	return c.pusher.push(ctx, sealed)
}

// PushManyOptions are options of a call that pushes many jobs.
type PushManyOptions struct {
	// PushOptions are shared by all jobs of the call.
	PushOptions
	// NotAtomic refuses a job whose key does not match alone; Pushed.Err says why. Otherwise all are
	// stored or none.
	NotAtomic bool
	// Spread makes the jobs ready one after the other, evenly over this time; ≤ 1,000 jobs.
	Spread time.Duration
	// RequestID repeats an earlier call whose outcome is unknown: Error.RequestID, or any id of 1 … 64
	// bytes that the call was made with. The same within 10 minutes returns the same ids.
	RequestID string
}

// PushMany pushes many jobs in one call, and returns what became of each, in order. Jobs are ≤ 1,000,
// or ≤ 10,000 if none has options of its own, and ≤ 16 MiB together. Options may be nil. It repeats a
// call without a definite answer, as Push does.
func (c *Client) PushMany(ctx context.Context, queue string, jobs []NewJob, options *PushManyOptions) ([]Pushed, error) {
	if options == nil {
		options = &PushManyOptions{}
	}
	if options.JobKey != "" {
		return nil, refuse("job_key", "belongs to one job: set it in NewJob.Options")
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	outs := make([]*Outgoing, len(jobs))
	for i := range jobs {
		out, err := outgoing(queue, jobs[i].Payload, &options.PushOptions)
		if err != nil {
			return nil, err
		}
		override(&out.Options, &jobs[i].Options)
		outs[i] = out
	}
	return c.through(ctx, outs, func(ctx context.Context, jobs []*Outgoing) ([]Pushed, error) {
		return c.pushMany(ctx, jobs, options)
	})
}

// pushCall makes a call of many pushes, which Close waits for.
func (c *Client) pushCall(ctx context.Context, request *joblinev1.PushRequest, requestID string) (*joblinev1.PushResponse, error) {
	if err := c.pusher.enter(); err != nil {
		return nil, err
	}
	defer c.pusher.leave()
	return c.link.push(ctx, c.calls, request, requestID)
}

func (c *Client) pushMany(ctx context.Context, outs []*Outgoing, options *PushManyOptions) ([]Pushed, error) {
	sealed, err := c.codec.sealJobs(outs, options.RequestID)
	if err != nil {
		return nil, err
	}
	request, err := requestOfMany(sealed)
	if err != nil {
		return nil, err
	}
	if options.NotAtomic {
		request.Atomic = new(bool)
	}
	if options.Spread > 0 {
		request.Spread = durationpb.New(options.Spread)
	}
	response, err := c.pushCall(ctx, request, options.RequestID)
	if err != nil {
		return nil, asJobs(errorOf(ctx, err))
	}
	return outcomesOf(response, request.GetQueue(), len(outs), func(i int) (string, string) {
		return outs[i].Options.JobKey, outs[i].Options.UniqueKey
	})
}

// outgoing returns a job as it will be stored.
func outgoing(queue string, payload any, options *PushOptions) (*Outgoing, error) {
	data, contentType, err := encode(payload)
	if err != nil {
		return nil, err
	}
	out := &Outgoing{Queue: queue, Payload: data}
	if options != nil {
		out.Options = *options
		out.Options.Headers = maps.Clone(options.Headers)
	}
	if out.Options.ContentType == "" {
		out.Options.ContentType = contentType
	}
	return out, nil
}

// override sets the fields that a job has of its own; headers, tags and dependencies add up on the
// server, and headers here.
func override(options, own *PushOptions) {
	from := reflect.ValueOf(own).Elem()
	if from.IsZero() {
		return
	}
	headers := options.Headers
	into := reflect.ValueOf(options).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	if own.Headers != nil {
		options.Headers = maps.Clone(headers)
		if options.Headers == nil {
			options.Headers = map[string]string{}
		}
		maps.Copy(options.Headers, own.Headers)
	}
	if own.Delay != 0 {
		options.RunAt = time.Time{}
	} else if !own.RunAt.IsZero() {
		options.Delay = 0
	}
}

// tryPush makes one try of a push.
func (l *link) tryPush(ctx context.Context, request *joblinev1.PushRequest) (*joblinev1.PushResponse, error) {
	if err := l.reach(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(l.timeout/tryShare, tryMax))
	defer cancel()
	return joblinev1.NewJobServiceClient(l.channel).Push(ctx, request)
}

// push pushes, and repeats the call until there is a definite reply or no time is left.
func (l *link) push(ctx context.Context, calls *pushCalls, request *joblinev1.PushRequest, requestID string) (*joblinev1.PushResponse, error) {
	end := func(bool) {}
	if requestID == "" {
		call := calls.begin()
		call.identify(request)
		requestID = call.text()
		end = func(isKnown bool) { calls.end(call, isKnown) }
	} else {
		identify(request, requestID)
	}
	giveUp := time.Now().Add(min(l.timeout, repeatMax))
	for tries, sent := 1, 0; ; tries++ {
		response, err := l.tryPush(ctx, request)
		if err == nil {
			l.answered()
			end(true)
			return response, nil
		}
		failed := errorOf(ctx, err)
		pause := max(pauses.Retry.After(tries), failed.RetryAfter)
		isRefused := failed.Definite() && !failed.Is(ErrNoToken) // the next try may have one
		isOver := isRefused || !failed.Retryable() || ctx.Err() != nil || time.Now().Add(pause).After(giveUp)
		if isOver || !l.pause(ctx, failed, pause) {
			end(isDefinite(failed, sent+1))
			return nil, unknownOutcome(failed, requestID, sent+1)
		}
		if !failed.Is(ErrNoToken) {
			sent++
		}
	}
}

func (l *link) pause(ctx context.Context, why *Error, pause time.Duration) bool {
	l.troubled(why)
	return sleep(ctx, pause)
}

// PushAndWait pushes a job and returns its result as a type: bytes for []byte, else from JSON. It
// waits until ctx ends: ErrWaitTimeout then, with the id of the job, which goes on. It returns
// ErrJobDead, ErrJobCancelled, ErrJobExpired or ErrJobNotFound (it completed and was not kept) if
// there is no result, and what Push returns. Options may be nil.
func PushAndWait[R any](ctx context.Context, client *Client, queue string, payload any, options *PushOptions) (R, error) {
	var none R
	pushed, err := client.Push(ctx, queue, payload, options)
	if err != nil {
		return none, err
	}
	end, err := client.WaitOne(ctx, pushed.ID)
	if err != nil {
		return none, err
	}
	return ResultOf[R](end)
}
