package main

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"
)

// asynqPeer is asynq on a Redis. It has no call that pushes many tasks.
type asynqPeer struct {
	target
	client    *asynq.Client
	inspector *asynq.Inspector
}

const asynqKind = "bench"

func newAsynq(_ context.Context, to target) (peer, error) {
	redis := asynq.RedisClientOpt{Addr: to.address, PoolSize: manyCallers}
	client := asynq.NewClient(redis)
	return &asynqPeer{to, client, asynq.NewInspector(redis)}, client.Ping()
}

func (p *asynqPeer) caller(context.Context) (caller, error) { return p, nil }

func (p *asynqPeer) push(ctx context.Context) error {
	_, err := p.client.EnqueueContext(ctx, asynq.NewTask(asynqKind, payload), asynq.Queue(p.queue))
	return err
}

func (p *asynqPeer) bulk(context.Context, int) error { return errNoBulk }

func (p *asynqPeer) waiting(context.Context) (int64, error) {
	queue, err := p.inspector.GetQueueInfo(p.queue)
	if err != nil {
		return 0, err
	}
	return int64(queue.Size), nil
}

// unheard drops what asynq logs.
type unheard struct{}

func (unheard) Debug(...any) {}
func (unheard) Info(...any)  {}
func (unheard) Warn(...any)  {}
func (unheard) Error(...any) {}
func (unheard) Fatal(...any) {}

func (p *asynqPeer) drain(ctx context.Context, jobs int64) error {
	left := newCountdown(jobs)
	server := asynq.NewServer(
		asynq.RedisClientOpt{Addr: p.address, PoolSize: 2 * manyCallers},
		asynq.Config{Concurrency: manyCallers, Queues: map[string]int{p.queue: 1}, Logger: unheard{}},
	)
	handle := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		if task.Type() != asynqKind {
			return errors.New("whose task is this?")
		}
		left.tick()
		return nil
	})
	if err := server.Start(handle); err != nil {
		return err
	}
	return left.wait(ctx) // acks are under way while the queue is counted
}
