package jobline

import (
	"maps"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const dayMax = 400 * 24 * time.Hour

// own is what a push has beside its payload in columns of its own, whatever it shares.
type own struct {
	jobKey    string
	uniqueKey string
	group     string
	headers   map[string]string
}

func (o *own) isPlain() bool {
	return o.jobKey == "" && o.uniqueKey == "" && o.group == "" && len(o.headers) == 0
}

// isPlainBut reports whether a push has nothing of its own but headers that all share.
func (o *own) isPlainBut(headers map[string]string) bool {
	return o.jobKey == "" && o.uniqueKey == "" && o.group == "" && maps.Equal(o.headers, headers)
}

// message returns the options as the protocol has them, all but JobKey, the start and AckLevel.
// It returns nil for options that say nothing.
func (o *PushOptions) message(contentType string) (*joblinev1.JobOptions, error) {
	m, err := o.shared(contentType)
	if err != nil {
		return nil, err
	}
	m.Headers = maps.Clone(o.Headers)
	m.UniqueKey, m.Group = o.UniqueKey, o.Group
	if proto.Size(m) == 0 {
		return nil, nil
	}
	return m, nil
}

// shared returns the options without those that travel in columns.
func (o *PushOptions) shared(contentType string) (*joblinev1.JobOptions, error) {
	if o.ContentType != "" {
		contentType = o.ContentType
	}
	m := &joblinev1.JobOptions{
		Name: o.Name, ContentType: contentType, Delivery: o.Delivery,
		UniqueMode: o.UniqueMode, OnDependencyFailure: o.OnDependencyFailure,
		DependsOn: o.DependsOn, Limiters: o.Limiters, BatchId: o.Batch, Phases: o.Phases,
		Tags: o.Tags, Webhook: o.Webhook, MinWorkerVersion: o.MinWorkerVersion,
		Priority: unlessZero(o.Priority), Cost: unlessZero(o.Cost), Slots: unlessZero(o.Slots),
		Lifo: unlessZero(o.LIFO), Sticky: unlessZero(o.Sticky),
		Backoff: o.Backoff.message(), Retention: o.Retention.message(),
		RetryUntil: moment(o.RetryUntil),
	}
	if o.HoldOnDead {
		m.OnDeadHead = joblinev1.OnDeadHead_ON_DEAD_HEAD_HOLD
	}
	err := o.putCounts(m)
	if err != nil {
		return nil, err
	}
	return m, o.putSpans(m)
}

func (o *PushOptions) putCounts(m *joblinev1.JobOptions) error {
	for _, count := range []struct {
		field string
		given int
		into  **int32
	}{{"options.max_attempts", o.MaxAttempts, &m.MaxAttempts}, {"options.max_stalls", o.MaxStalls, &m.MaxStalls}} {
		switch {
		case count.given == None:
			*count.into = new(int32) // unlimited attempts; no stall forgiven
		case count.given < 0 || count.given > math.MaxInt32:
			return refuse(count.field, "must be 1 … 1,000 or None, not %d", count.given)
		case count.given > 0:
			*count.into = unlessZero(int32(count.given))
		}
	}
	return nil
}

func (o *PushOptions) putSpans(m *joblinev1.JobOptions) error {
	for _, span := range []struct {
		field   string
		given   time.Duration
		into    **durationpb.Duration
		hasNone bool
	}{
		{"options.lease", o.Lease, &m.Lease, false},
		{"options.ttl", o.TTL, &m.Ttl, true},
		{"options.timeout", o.Timeout, &m.Timeout, true},
		{"options.unique_ttl", o.UniqueTTL, &m.UniqueTtl, false},
		{"options.unique_max_wait", o.UniqueMaxWait, &m.UniqueMaxWait, false},
		{"options.block_timeout", o.BlockTimeout, &m.BlockTimeout, false},
	} {
		switch {
		case span.hasNone && span.given == None:
			*span.into = durationpb.New(0)
		case span.given < 0:
			return refuse(span.field, "must not be negative, and is %s", span.given)
		case span.given > 0:
			*span.into = durationpb.New(span.given)
		}
	}
	return nil
}

// startOf returns the delay or moment at which a job becomes ready; both nil for at once.
func (o *PushOptions) startOf() (*durationpb.Duration, *timestamppb.Timestamp, error) {
	if o.Delay != 0 && !o.RunAt.IsZero() {
		return nil, nil, refuse("delay", "give Delay or RunAt, not both")
	}
	if o.Delay < 0 || o.Delay > dayMax {
		return nil, nil, refuse("delay", "must be 0 s … 400 days, not %s", o.Delay)
	}
	return span(o.Delay), moment(o.RunAt), nil
}

func (b *Backoff) message() *joblinev1.Backoff {
	if b == nil {
		return nil
	}
	m := &joblinev1.Backoff{Base: span(b.Base), MaxDelay: span(b.Max)}
	if b.Fixed {
		m.Kind = joblinev1.BackoffKind_BACKOFF_KIND_FIXED
	}
	if b.Jitter == None {
		m.Jitter = new(float64)
	} else {
		m.Jitter = unlessZero(b.Jitter)
	}
	for _, delay := range b.Delays {
		m.Delays = append(m.Delays, durationpb.New(delay))
	}
	return m
}

func (r *Retention) message() *joblinev1.Retention {
	if r == nil {
		return nil
	}
	return &joblinev1.Retention{
		RemoveOnComplete: unlessZero(r.RemoveOnComplete), RemoveOnFail: unlessZero(r.RemoveOnFail),
		Age: span(r.Age), DeleteAfter: span(r.DeleteAfter), Count: unlessZero(r.Count),
	}
}

func unlessZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func span(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
