package jobline_test

import (
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
		})
	}
}
