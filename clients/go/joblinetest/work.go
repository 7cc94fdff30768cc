package joblinetest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Drain runs handlers until nothing is left for them that can be done now: a real worker, to which each
// function adds handlers as the program does. Without any it waits for the workers that the test has
// started. It moves no clock. It fails the test after Options.Timeout of real time, with what is left and why.
func (k *Kit) Drain(handlers ...func(*jobline.Worker)) {
	k.t.Helper()
	if len(handlers) == 0 {
		k.drain("")
		return
	}
	worker, stop := k.work(nil, handlers)
	for _, queue := range worker.Queues() {
		k.drain(queue)
	}
	stop()
}

// Work starts a worker with handlers, and returns when it is connected. It stops with the test. Options, which
// may be nil, are its own; Connection and Codec are those of Options.Client unless they are set, and without a Logger
// it logs nothing.
func (k *Kit) Work(options *jobline.WorkerOptions, handlers ...func(*jobline.Worker)) *jobline.Worker {
	k.t.Helper()
	worker, stop := k.work(options, handlers)
	k.t.Cleanup(stop)
	return worker
}

func (k *Kit) work(options *jobline.WorkerOptions, handlers []func(*jobline.Worker)) (worker *jobline.Worker, stop func()) {
	k.t.Helper()
	own := jobline.WorkerOptions{}
	if options != nil {
		own = *options
	}
	if own.Logger == nil {
		own.Logger = discard
	}
	if reflect.ValueOf(own.Connection).IsZero() {
		own.Connection = k.options.Client.Connection
	}
	if own.Codec == nil {
		own.Codec = k.options.Client.Codec
	}
	worker, err := jobline.NewWorker(k.Address, &own)
	if err != nil {
		k.t.Fatalf("joblinetest: %v", err)
	}
	for _, add := range handlers {
		add(worker)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	select {
	case <-worker.Connected():
	case err := <-ended:
		k.t.Fatalf("joblinetest: the worker ended before it was connected: %v", err)
	case <-timer.C:
		k.t.Fatalf("joblinetest: the worker was not connected within %s", callTime)
	}
	return worker, sync.OnceFunc(func() {
		worker.Stop()
		if err := <-ended; err != nil {
			k.t.Errorf("joblinetest: the worker ended: %v", err)
		}
	})
}

func (k *Kit) drain(queue string) {
	k.t.Helper()
	ctx, cancel := within(k.options.Timeout + callTime)
	defer cancel()
	request := &joblinev1.DrainRequest{Queue: queue, Timeout: durationpb.New(k.options.Timeout)}
	if _, err := k.tests.Drain(ctx, request); err != nil {
		k.fatal("Drain", err)
	}
}

// WaitFor returns jobs once count of them (1 … 1,000) match: for workers and goroutines that the test has
// started. The matches are those that the server knows: all but Payload, PayloadHas, Where and Times. It
// fails the test after Options.Timeout of real time.
func (k *Kit) WaitFor(count int, matches ...Match) []*Job {
	k.t.Helper()
	q := &query{filter: &joblinev1.JobFilter{}}
	for _, match := range matches {
		match(q)
	}
	if len(q.checks) > 0 || q.times != nil {
		k.t.Fatalf("joblinetest: WaitFor does not know payloads, conditions and Times: wait for a state, then assert")
	}
	ctx, cancel := within(k.options.Timeout + callTime)
	defer cancel()
	response, err := k.tests.WaitFor(ctx, &joblinev1.WaitForRequest{
		Filter: q.filter, Count: int32(count), Timeout: durationpb.New(k.options.Timeout),
	})
	if err != nil {
		k.fatal("WaitFor", err)
	}
	var jobs []*Job
	for _, job := range response.GetJobs() {
		jobs = append(jobs, &Job{job, k})
	}
	return jobs
}

// Abandon has the first ready job of a queue handed to a worker that is never heard of again, and returns it.
// Its lease ends when the clock is moved past it.
func (k *Kit) Abandon(queue string) *Job {
	k.t.Helper()
	return k.Job(k.lease(queue).GetId())
}

func (k *Kit) lease(queue string) *joblinev1.LeasedJob {
	k.t.Helper()
	ctx, cancel := within(callTime)
	defer cancel()
	response, err := joblinev1.NewJobServiceClient(k.Client.Conn()).Pull(ctx, &joblinev1.PullRequest{
		Queues: []*joblinev1.QueueWeight{{Queue: queue}}, Worker: "joblinetest", MaxMessageBytes: 64 << 20,
	})
	if err != nil {
		k.fatal("Pull", err)
	}
	if len(response.GetJobs()) == 0 {
		k.t.Fatalf("joblinetest: no job of queue %q is ready\nthere are:\n%s", queue, k.shown(nil))
	}
	return response.GetJobs()[0]
}

var workOneNumber atomic.Int64

func workOneQueue() string { return fmt.Sprintf("work-one-%d", workOneNumber.Add(1)) }
