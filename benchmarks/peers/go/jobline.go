package main

import (
	"context"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// joblinePeer is Jobline itself; the variant "buffered" answers pushes before they are on disk.
type joblinePeer struct {
	target
	client *jobline.Client
	level  jobline.AckLevel
}

func newJobline(ctx context.Context, to target) (peer, error) {
	client, err := jobline.New(to.address, nil)
	if err != nil {
		return nil, err
	}
	level := jobline.AckFsynced
	if to.has("buffered") {
		level = jobline.AckBuffered
	}
	return &joblinePeer{to, client, level}, client.Connect(ctx)
}

func (p *joblinePeer) caller(context.Context) (caller, error) { return p, nil }

func (p *joblinePeer) push(ctx context.Context) error {
	_, err := p.client.Push(ctx, p.queue, payload, &jobline.PushOptions{AckLevel: p.level})
	return err
}

func (p *joblinePeer) bulk(ctx context.Context, jobs int) error {
	options := &jobline.PushManyOptions{PushOptions: jobline.PushOptions{AckLevel: p.level}}
	_, err := p.client.PushPayloads(ctx, p.queue, repeated(jobs), options)
	return err
}

func (p *joblinePeer) waiting(ctx context.Context) (int64, error) {
	queues := joblinev1.NewQueueServiceClient(p.client.Conn())
	response, err := queues.GetQueue(ctx, &joblinev1.GetQueueRequest{Queue: p.queue})
	counts := response.GetQueue().GetCounts()
	return counts.GetReady() + counts.GetActive(), err
}

func (p *joblinePeer) drain(ctx context.Context, jobs int64) error {
	worker, err := jobline.NewWorker(p.address, nil)
	if err != nil {
		return err
	}
	left := newCountdown(jobs)
	jobline.Handle(worker, p.queue, "", func(context.Context, *jobline.Job[[]byte]) (jobline.NoResult, error) {
		left.tick()
		return jobline.NoResult{}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	if err := left.wait(ctx); err != nil {
		return err
	}
	worker.Stop()
	return <-ended // all acks are confirmed
}

func repeated(jobs int) [][]byte {
	payloads := make([][]byte, jobs)
	for i := range payloads {
		payloads[i] = payload
	}
	return payloads
}
