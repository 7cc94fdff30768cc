package jobline_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
)

// BenchmarkPush is 64 callers, each of which pushes one job of 100 bytes at a time.
func BenchmarkPush(b *testing.B) {
	for _, level := range []struct {
		name     string
		ackLevel jobline.AckLevel
		callers  int
	}{
		{"fsynced-64", jobline.AckFsynced, 64},
		{"buffered-64", jobline.AckBuffered, 64},
		{"fsynced-1000", jobline.AckFsynced, 1_000},
	} {
		b.Run(level.name, func(b *testing.B) {
			client, ctx, queue := newClient(b, nil), newContext(b), newQueue(b)
			if err := client.Connect(ctx); err != nil {
				b.Fatal(err)
			}
			payload := make([]byte, 100)
			options := &jobline.PushOptions{AckLevel: level.ackLevel}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var callers sync.WaitGroup
			for range level.callers {
				callers.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := client.Push(ctx, queue, payload, options); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(b.N)/float64(jobline.PushCalls(client)), "jobs/call")
		})
	}
}

// BenchmarkPushPayloads is 64 jobs under way in calls of one size: what 64 callers of Push could reach if they shared
// calls like that, and sharing cost nothing.
func BenchmarkPushPayloads(b *testing.B) {
	for _, calls := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("%d-calls-of-%d", calls, 64/calls), func(b *testing.B) {
			client, ctx, queue := newClient(b, nil), newContext(b), newQueue(b)
			payloads := make([][]byte, 64/calls)
			for i := range payloads {
				payloads[i] = make([]byte, 100)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var callers sync.WaitGroup
			for range calls {
				callers.Go(func() {
					for left.Add(-int64(len(payloads))) >= 0 {
						if _, err := client.PushPayloads(ctx, queue, payloads, nil); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkWorker is a worker whose handler returns at once, on jobs that were pushed before.
func BenchmarkWorker(b *testing.B) {
	client, ctx, queue := newClient(b, nil), newContext(b), newQueue(b)
	payloads := make([][]byte, 10_000)
	for i := range payloads {
		payloads[i] = make([]byte, 100)
	}
	for left := b.N; left > 0; left -= len(payloads) {
		if _, err := client.PushPayloads(ctx, queue, payloads[:min(left, len(payloads))], nil); err != nil {
			b.Fatal(err)
		}
	}
	worker := newWorker(b, jobline.WorkerOptions{})
	var done atomic.Int64
	all := make(chan struct{})
	jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[[]byte]) (jobline.NoResult, error) {
		if done.Add(1) == int64(b.N) {
			close(all)
		}
		return jobline.NoResult{}, nil
	})
	b.ResetTimer()
	stop := start(b, worker)
	<-all
	stop() // it has confirmed all acks then
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
