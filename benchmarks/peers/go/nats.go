package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// natsPeer is a JetStream stream that is a work queue: what is acked is deleted. A bulk push is many
// publishes whose acks are awaited together; in the variant "atomic" it is one atomic batch.
type natsPeer struct {
	target
	js     jetstream.JetStream
	stream jetstream.Stream
}

// Messages that a worker may hold without acks; the default is a thousand.
const natsPending = 20_000

func newNATS(ctx context.Context, to target) (peer, error) {
	connection, err := nats.Connect(to.address)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(natsPending))
	if err != nil {
		return nil, err
	}
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: to.queue, Subjects: []string{to.queue}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage, AllowAtomicPublish: true,
	})
	return &natsPeer{to, js, stream}, err
}

func (p *natsPeer) caller(context.Context) (caller, error) { return p, nil }

func (p *natsPeer) push(ctx context.Context) error {
	_, err := p.js.Publish(ctx, p.queue, payload)
	return err
}

func (p *natsPeer) bulk(ctx context.Context, jobs int) error {
	if p.has("atomic") {
		return p.atomic(ctx, jobs)
	}
	futures := make([]jetstream.PubAckFuture, jobs)
	for i := range futures {
		future, err := p.js.PublishAsync(p.queue, payload)
		if err != nil {
			return err
		}
		futures[i] = future
	}
	for _, future := range futures {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *natsPeer) atomic(ctx context.Context, jobs int) error {
	messages := make([]*nats.Msg, jobs)
	for i := range messages {
		messages[i] = &nats.Msg{Subject: p.queue, Data: payload, Header: nats.Header{}}
	}
	ack, err := jetstreamext.PublishMsgBatch(ctx, p.js, messages)
	if err == nil && ack.BatchSize != uint64(jobs) {
		err = fmt.Errorf("a batch of %d was stored as one of %d", jobs, ack.BatchSize)
	}
	return err
}

func (p *natsPeer) waiting(ctx context.Context) (int64, error) {
	state, err := p.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int64(state.State.Msgs), nil
}

func (p *natsPeer) drain(ctx context.Context, jobs int64) error {
	consumer, err := p.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: natsPending,
	})
	if err != nil {
		return err
	}
	left := newCountdown(jobs)
	// Ack does not wait for the server; that all have arrived shows when the stream is empty.
	consuming, err := consumer.Consume(func(message jetstream.Msg) {
		if message.Ack() == nil {
			left.tick()
		}
	}, jetstream.PullMaxMessages(natsPending/2))
	if err != nil {
		return err
	}
	defer consuming.Stop()
	return left.wait(ctx)
}
