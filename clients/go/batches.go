package jobline

import (
	"context"
	"crypto/rand"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// BatchOptions are the settings of a batch: any number of jobs that end together. The jobs name it in
// PushOptions.Batch.
type BatchOptions struct {
	// Name says what it is, ≤ 256 characters.
	Name string
	// Tags are ≤ 16 words to filter by.
	Tags []string
	// Parent is the batch that it is a member of; 0 for none.
	Parent uint64
	// OnSuccess is pushed when all members have completed, OnComplete when all have ended, OnFirstDeath
	// when the first one is dead; each once. Nil: nothing is.
	OnSuccess, OnComplete, OnFirstDeath *Callback
}

// Callback is a job that a batch pushes, with the batch's id in its header jobline-batch.
type Callback struct {
	Queue string
	// Payload is bytes, or any value as JSON, ≤ 64 KiB.
	Payload any
	// Options of the job, without JobKey, Batch, DependsOn and RunAt.
	Options PushOptions
}

func (c *Callback) message(codec *Codec) (*joblinev1.BatchCallback, error) {
	if c == nil {
		return nil, nil
	}
	out, err := outgoing(c.Queue, c.Payload, &c.Options)
	if err != nil {
		return nil, err
	}
	if out, err = codec.sealJob(out, ""); err != nil {
		return nil, err
	}
	options, err := out.Options.message("")
	if err != nil {
		return nil, err
	}
	m := &joblinev1.BatchCallback{Queue: c.Queue, Payload: &joblinev1.BatchCallback_Data{Data: out.Payload}, Options: options}
	if c.Options.Delay > 0 {
		m.Delay = durationpb.New(c.Options.Delay)
	}
	return m, nil
}

// CreateBatch creates a batch that is open: push its jobs, then CloseBatch. Options may be nil.
func (c *Client) CreateBatch(ctx context.Context, options *BatchOptions) (*joblinev1.Batch, error) {
	if options == nil {
		options = &BatchOptions{}
	}
	request := &joblinev1.CreateBatchRequest{
		Name: options.Name, Tags: options.Tags, ParentId: options.Parent, RequestId: rand.Text(),
	}
	var err error
	for _, one := range []struct {
		from *Callback
		into **joblinev1.BatchCallback
	}{{options.OnSuccess, &request.OnSuccess}, {options.OnComplete, &request.OnComplete}, {options.OnFirstDeath, &request.OnFirstDeath}} {
		if *one.into, err = one.from.message(c.codec); err != nil {
			return nil, err
		}
	}
	response, err := write(ctx, c.link, c.batches().CreateBatch, request)
	return response.GetBatch(), err
}

func (c *Client) batches() joblinev1.BatchServiceClient {
	return joblinev1.NewBatchServiceClient(c.link.channel)
}

// CloseBatch closes a batch: it is complete as soon as all its members have ended.
func (c *Client) CloseBatch(ctx context.Context, id uint64) (*joblinev1.Batch, error) {
	response, err := write(ctx, c.link, c.batches().CloseBatch, &joblinev1.CloseBatchRequest{Id: id})
	return response.GetBatch(), err
}

// GetBatch returns a batch with its counts.
func (c *Client) GetBatch(ctx context.Context, id uint64) (*joblinev1.Batch, error) {
	response, err := call(ctx, c.link, c.batches().GetBatch, &joblinev1.GetBatchRequest{Id: id})
	return response.GetBatch(), err
}

// CancelBatch closes a batch for good and cancels its members, for a reason that operators see.
func (c *Client) CancelBatch(ctx context.Context, id uint64, reason string) (*joblinev1.CancelBatchResponse, error) {
	return write(ctx, c.link, c.batches().CancelBatch, &joblinev1.CancelBatchRequest{Id: id, Reason: reason})
}
