package joblinetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinetest"
)

// begun is a context that says when its deadline is asked for first: then a wait has begun.
type begun struct {
	context.Context
	once  *sync.Once
	asked chan struct{}
}

func (b begun) Deadline() (time.Time, bool) {
	b.once.Do(func() { close(b.asked) })
	return b.Context.Deadline()
}

// TestWaitsEndByTheClockOfTheKit: as soon as it has passed the time of their contexts, and not before; what has ended
// by then is an answer.
func TestWaitsEndByTheClockOfTheKit(t *testing.T) {
	kit := joblinetest.New(t, nil)
	kit.Work(nil, func(worker *jobline.Worker) {
		jobline.Handle(worker, "sums", "", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload + 1, nil })
	})
	// A client of the program under test.
	client, err := jobline.New("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	wait := func(queue string, delay time.Duration, count int) <-chan error {
		lot, err := client.PushPayloads(t.Context(), queue, slicesOf(count), &jobline.PushManyOptions{PushOptions: jobline.PushOptions{Delay: delay}})
		if err != nil {
			t.Fatal(err)
		}
		var ids []uint64
		for i := range count {
			ids = append(ids, lot.FirstID+uint64(i))
		}
		hour, cancel := context.WithTimeout(context.Background(), time.Hour)
		t.Cleanup(cancel)
		ctx, ended := begun{hour, &sync.Once{}, make(chan struct{})}, make(chan error, 1)
		go func() {
			for _, err := range client.Wait(ctx, ids...) {
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		<-ctx.asked
		return ended
	}
	never, many := wait("nobody", 0, 1), wait("nobody", 0, 200)
	inTime, manyInTime := wait("sums", 59*time.Minute, 1), wait("sums", 59*time.Minute, 200)
	kit.Advance(50 * time.Minute)
	select {
	case err := <-never:
		t.Fatalf("it had ten minutes left: %v", err)
	case err := <-many:
		t.Fatalf("it had ten minutes left: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	kit.Advance(11 * time.Minute)
	for _, ended := range []<-chan error{never, many} {
		if err := <-ended; !errors.Is(err, jobline.ErrWaitTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	for _, ended := range []<-chan error{inTime, manyInTime} {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func slicesOf(count int) [][]byte {
	var payloads [][]byte
	for range count {
		payloads = append(payloads, []byte("1"))
	}
	return payloads
}
