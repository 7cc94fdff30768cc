package jobline

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Jobs with something of their own that the server takes in a call.
const rowsMax = 1_000

// Lot is what became of payloads that were pushed together: their ids are consecutive.
type Lot struct {
	// FirstID is the id of the first job.
	FirstID uint64
	// Count is how many there are.
	Count int
	// AckLevel that was reached.
	AckLevel AckLevel
}

// PushPayloads pushes up to 10,000 jobs, ≤ 16 MiB, that share everything but the payload: the fastest
// way. All or none are stored. Options may be nil; they are without JobKey and UniqueKey.
func (c *Client) PushPayloads(ctx context.Context, queue string, payloads [][]byte, options *PushManyOptions) (Lot, error) {
	if options == nil {
		options = &PushManyOptions{}
	}
	if options.JobKey != "" || options.UniqueKey != "" {
		return Lot{}, refuse("job_key", "payloads share all options: keys need PushMany")
	}
	if len(payloads) == 0 {
		return Lot{}, nil
	}
	if c.middleware != nil || c.codec != nil || c.tracing.isOn() {
		return c.lotThrough(ctx, queue, payloads, options)
	}
	request := &joblinev1.PushRequest{Queue: queue, Payloads: payloads}
	shared := options.PushOptions
	if err := putShared(request, &shared, ""); err != nil {
		return Lot{}, err
	}
	if shared.Group != "" {
		if request.Options == nil {
			request.Options = &joblinev1.JobOptions{}
		}
		request.Options.Group = shared.Group
	}
	if options.Spread > 0 {
		request.Spread = durationpb.New(options.Spread)
	}
	response, err := c.pushCall(ctx, request, options.RequestID)
	if err != nil {
		return Lot{}, asJobs(errorOf(ctx, err))
	}
	if int(response.GetCount()) != len(payloads) {
		return Lot{}, unexpected("%d jobs were pushed, and the answer is of %d", len(payloads), response.GetCount())
	}
	return Lot{response.GetFirstId(), int(response.GetCount()), response.GetAckLevel()}, nil
}

func (c *Client) lotThrough(ctx context.Context, queue string, payloads [][]byte, options *PushManyOptions) (Lot, error) {
	jobs := make([]NewJob, len(payloads))
	for i, payload := range payloads {
		jobs[i].Payload = payload
	}
	pushed, err := c.PushMany(ctx, queue, jobs, options)
	if err != nil {
		return Lot{}, err
	}
	return Lot{pushed[0].ID, len(pushed), pushed[0].AckLevel}, nil
}

// requestOfMany returns the request of many jobs: in columns if they differ in payload, headers, keys
// and group alone, else one message for each.
func requestOfMany(outs []*Outgoing) (*joblinev1.PushRequest, error) {
	if pushes := inColumns(outs); pushes != nil {
		request, err := requestOf(pushes)
		if request != nil {
			request.Atomic = nil // the caller's choice, here
		}
		return request, err
	}
	request := &joblinev1.PushRequest{Queue: outs[0].Queue, AckLevel: outs[0].Options.AckLevel}
	for _, out := range outs {
		row, err := rowOf(out.Payload, &out.Options)
		if err != nil {
			return nil, err
		}
		request.Jobs = append(request.Jobs, row)
	}
	return request, nil
}

// inColumns returns jobs that share what a column cannot hold, nil if they do not.
func inColumns(outs []*Outgoing) []*push {
	pushes := make([]*push, len(outs))
	areAllPlain := true
	for i, out := range outs {
		one, err := newPush(out)
		if err != nil || (i > 0 && one.key != pushes[0].key) {
			return nil
		}
		pushes[i] = one
		areAllPlain = areAllPlain && one.own.isPlainBut(pushes[0].own.headers)
		if len(outs) > rowsMax && !areAllPlain {
			return nil
		}
	}
	return pushes
}

// rowOf returns the message of one job.
func rowOf(payload []byte, o *PushOptions) (*joblinev1.NewJob, error) {
	options, err := o.message("")
	if err != nil {
		return nil, err
	}
	row := &joblinev1.NewJob{
		Payload: &joblinev1.NewJob_Data{Data: payload}, Options: options,
		JobKey: o.JobKey, DependsOnIndexes: o.DependsOnIndexes,
	}
	delay, runAt, err := o.startOf()
	switch {
	case err != nil:
		return nil, err
	case delay != nil:
		row.Start = &joblinev1.NewJob_Delay{Delay: delay}
	case runAt != nil:
		row.Start = &joblinev1.NewJob_RunAt{RunAt: runAt}
	}
	return row, nil
}
