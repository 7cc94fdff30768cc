package jobline

import (
	"maps"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// laneKey is what pushes share that may be sent in one call.
type laneKey struct {
	queue, name, contentType string
	ackLevel                 AckLevel
	rest                     string // all other options and the start, as bytes; "" for none
}

// push is one job on its way, with its caller.
type push struct {
	payload []byte
	own     own
	key     laneKey
	options *PushOptions // as the caller gave them, for what the key stands for
	answer  chan pushAnswer
	since   time.Time
	isSent  bool
	isGone  bool // withdrawn
}

type pushAnswer struct {
	pushed Pushed
	err    error
}

// lane is the pushes of one key: one call of it is in flight at a time, so they keep their order.
type lane struct {
	key    laneKey
	queue  []*push
	gone   int // of the queue
	isBusy bool
}

// withdraw takes a push out of the lane. It stays in the queue until half of that is gone: thousands of callers whose
// context ends at once would each move all others.
func (l *lane) withdraw(one *push) {
	one.isGone, one.payload = true, nil
	if l.gone++; l.gone > len(l.queue)/2 {
		l.sweep()
	}
}

func (l *lane) sweep() {
	l.queue = slices.DeleteFunc(l.queue, func(one *push) bool { return one.isGone })
	l.gone = 0
}

// newPush returns a job to push, or the error that the server would answer with.
func newPush(out *Outgoing) (*push, error) {
	o := &out.Options
	p := &push{
		payload: out.Payload, options: o, answer: make(chan pushAnswer, 1),
		own: own{jobKey: o.JobKey, uniqueKey: o.UniqueKey, group: o.Group, headers: o.Headers},
		key: laneKey{queue: out.Queue, name: o.Name, contentType: o.ContentType, ackLevel: o.AckLevel},
	}
	if err := refuseAlone(o); err != nil {
		return nil, err
	}
	if err := refuseNoText(out); err != nil {
		return nil, err
	}
	rest := *o
	rest.Name, rest.JobKey, rest.Headers, rest.ContentType = "", "", nil, ""
	rest.AckLevel, rest.UniqueKey, rest.Group = 0, "", ""
	if !fitColumns(o.Headers) {
		rest.Headers, p.own.headers = o.Headers, nil
	}
	if reflect.ValueOf(&rest).Elem().IsZero() {
		return p, nil
	}
	request := &joblinev1.PushRequest{}
	if err := putShared(request, &rest, ""); err != nil {
		return nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, refuse("options", "%v", err)
	}
	p.key.rest = string(data)
	return p, nil
}

// refuseAlone refuses options that mean nothing without a group or a unique key. Among pushes that
// share a call the server would take them, if another one has what they need.
func refuseAlone(o *PushOptions) error {
	switch {
	case o.UniqueKey == "" && (o.UniqueMode != 0 || o.UniqueTTL != 0 || o.UniqueMaxWait != 0):
		return refuse("options.unique_mode", "needs a unique_key")
	case o.Group == "" && (o.Sticky || o.HoldOnDead):
		return refuse("options.sticky", "needs a group")
	case len(o.DependsOnIndexes) > 0:
		return refuse("depends_on_indexes", "a single push has no other jobs: use PushMany")
	}
	return nil
}

// refuseNoText refuses what no message can hold, before it is in one with the pushes of others.
func refuseNoText(out *Outgoing) error {
	o := &out.Options
	for _, one := range [...]struct{ field, text string }{
		{"queue", out.Queue}, {"options.name", o.Name}, {"options.content_type", o.ContentType},
		{"job_key", o.JobKey}, {"options.unique_key", o.UniqueKey}, {"options.group", o.Group},
	} {
		if !utf8.ValidString(one.text) {
			return refuse(one.field, "is not UTF-8")
		}
	}
	for key, value := range o.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return refuse("options.headers", "the header %q is not UTF-8", key)
		}
	}
	return nil
}

// putShared puts options that all jobs of a request share into it, and their start.
func putShared(request *joblinev1.PushRequest, o *PushOptions, contentType string) error {
	options, err := o.shared(contentType)
	if err != nil {
		return err
	}
	options.Headers = maps.Clone(o.Headers)
	if proto.Size(options) > 0 {
		request.Options = options
	}
	request.AckLevel = o.AckLevel
	delay, runAt, err := o.startOf()
	switch {
	case err != nil:
		return err
	case delay != nil:
		request.Start = &joblinev1.PushRequest_Delay{Delay: delay}
	case runAt != nil:
		request.Start = &joblinev1.PushRequest_RunAt{RunAt: runAt}
	}
	return nil
}

// requestOf returns the request of pushes that share a key.
func requestOf(pushes []*push) (*joblinev1.PushRequest, error) {
	first := pushes[0]
	request := &joblinev1.PushRequest{Queue: first.key.queue}
	shared := *first.options
	if first.own.headers != nil {
		shared.Headers = nil
	}
	if err := putShared(request, &shared, ""); err != nil {
		return nil, err
	}
	request.Payloads = make([][]byte, len(pushes))
	isPlain := true
	for i, p := range pushes {
		request.Payloads[i] = p.payload
		isPlain = isPlain && p.own.isPlain()
	}
	if isPlain {
		return request, nil
	}
	owns := make([]own, len(pushes))
	for i, p := range pushes {
		owns[i] = p.own
		if p.own.jobKey != "" || p.own.uniqueKey != "" {
			request.Atomic = new(bool)
		}
	}
	putColumns(request, owns)
	return request, nil
}

// cut removes the first pushes of a lane, as many as one call may carry; one always fits.
func (l *lane) cut(jobsMax, bytesMax int) []*push {
	if l.gone > 0 {
		l.sweep()
	}
	bytes, keys := 0, map[string]struct{}(nil)
	count := 0
	for _, p := range l.queue {
		bytes += len(p.payload)
		for key := range p.own.headers {
			if keys == nil {
				keys = map[string]struct{}{}
			}
			keys[key] = struct{}{}
		}
		if count > 0 && (count >= jobsMax || bytes > bytesMax || len(keys) > headerKeysMax) {
			break
		}
		count++
	}
	taken := l.queue[:count:count]
	l.queue = l.queue[count:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	for _, p := range taken {
		p.isSent = true
	}
	return taken
}
