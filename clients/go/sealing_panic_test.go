package jobline_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// faultyRing panics at some of its calls, counted from 1.
type faultyRing struct {
	*jobline.KeyMap
	findPanics, currentPanics []int

	mu              sync.Mutex
	finds, currents int
}

func (r *faultyRing) count(calls *int, panics []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *calls++; slices.Contains(panics, *calls) {
		panic("the key ring is out of order")
	}
}

func (r *faultyRing) Find(id string) ([]byte, error) {
	r.count(&r.finds, r.findPanics)
	return r.KeyMap.Find(id)
}

func (r *faultyRing) Current(group string) (string, []byte, error) {
	r.count(&r.currents, r.currentPanics)
	return r.KeyMap.Current(group)
}

func TestKeyRingThatPanicsFailsTheAttempt(t *testing.T) {
	ctx, queue := newContext(t), newQueue(t)
	// A payload is opened, its result is sealed: call by call.
	ring := &faultyRing{KeyMap: newRing(), findPanics: []int{1, 3}}
	client := newClient(t, &jobline.ClientOptions{Codec: newCodec(t, newRing())})
	worker := newWorker(t, jobline.WorkerOptions{Codec: newCodec(t, ring), Concurrency: 1, Logger: quiet})
	attempts := []int{}
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		attempts = append(attempts, job.Attempt)
		return job.Payload, nil
	})
	jobline.HandleBatch(worker, queue, "batch", nil, func(_ context.Context, batch *jobline.Batch[int, int]) error {
		for _, job := range batch.Jobs {
			batch.Done(job, job.Attempt)
		}
		return nil
	})
	start(t, worker)
	options := &jobline.PushOptions{Backoff: &jobline.Backoff{Base: time.Millisecond}}
	if got, err := jobline.PushAndWait[int](ctx, client, queue, 7, options); err != nil || got != 7 {
		t.Errorf("got %v, %v", got, err)
	}
	if !slices.Equal(attempts, []int{2, 3}) {
		t.Errorf("the handler ran at the attempts %v", attempts)
	}
	ring.mu.Lock()
	ring.findPanics = []int{ring.finds + 1, ring.finds + 3}
	ring.mu.Unlock()
	options.Name = "batch"
	if got, err := jobline.PushAndWait[int](ctx, client, queue, 7, options); err != nil || got != 3 {
		t.Errorf("a batch: %v, %v", got, err)
	}
}

func TestKeyRingThatPanicsForChildrenFailsTheAttempt(t *testing.T) {
	ctx, queue := newContext(t), newQueue(t)
	ring := &faultyRing{KeyMap: newRing(), currentPanics: []int{1}}
	client := newClient(t, &jobline.ClientOptions{Codec: newCodec(t, newRing())})
	worker := newWorker(t, jobline.WorkerOptions{Codec: newCodec(t, ring), Logger: quiet})
	jobline.Handle(worker, queue, "child", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload, nil })
	jobline.Handle(worker, queue, "", func(ctx context.Context, job *jobline.Job[int]) (int, error) {
		if children, err := job.Children(ctx); err != nil || len(children) > 0 {
			return job.Attempt, err
		}
		return 0, jobline.WaitFor(jobline.FlowJob{Queue: queue, Payload: 1, Options: jobline.PushOptions{Name: "child"}})
	})
	start(t, worker)
	options := &jobline.PushOptions{Backoff: &jobline.Backoff{Base: time.Millisecond}}
	if got, err := jobline.PushAndWait[int](ctx, client, queue, 7, options); err != nil || got != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}
