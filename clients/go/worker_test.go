package jobline_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// newWorker is a worker of the shared server that logs nothing.
func newWorker(t testing.TB, options jobline.WorkerOptions) *jobline.Worker {
	t.Helper()
	if shared == nil {
		t.Skip(testserver.ErrNoServer)
	}
	return workerOf(t, shared.Address, options)
}

func workerOf(t testing.TB, address string, options jobline.WorkerOptions) *jobline.Worker {
	t.Helper()
	if options.Logger == nil {
		options.Logger = quiet
	}
	return must[*jobline.Worker](t)(jobline.NewWorker(address, &options))
}

// start runs a worker until the test ends, or stop is called; its error fails the test.
func start(t testing.TB, worker *jobline.Worker) (stop func()) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	stop = sync.OnceFunc(func() {
		worker.Stop()
		if err := <-ended; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-worker.Connected():
	case <-time.After(time.Minute):
		t.Fatal("the worker did not connect")
	}
	return stop
}

type sum struct {
	Of []int `json:"of"`
}

func TestWorkerRunsTypedHandlers(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "sum", func(_ context.Context, job *jobline.Job[sum]) (int, error) {
		total := 0
		for _, one := range job.Payload.Of {
			total += one
		}
		return total, nil
	})
	jobline.Handle(worker, queue, "raw", func(_ context.Context, job *jobline.Job[[]byte]) ([]byte, error) {
		return append([]byte("got "), job.Payload...), nil
	})
	jobline.Handle(worker, queue, jobline.AnyName, func(_ context.Context, job *jobline.Job[any]) (jobline.NoResult, error) {
		return jobline.NoResult{}, nil
	})
	start(t, worker)
	named := func(name string) *jobline.PushOptions { return &jobline.PushOptions{Name: name} }
	if got := must[int](t)(jobline.PushAndWait[int](ctx, client, queue, sum{[]int{1, 2, 39}}, named("sum"))); got != 42 {
		t.Errorf("got %d", got)
	}
	if got := must[[]byte](t)(jobline.PushAndWait[[]byte](ctx, client, queue, []byte{0xff}, named("raw"))); string(got) != "got \xff" {
		t.Errorf("got %q", got)
	}
	if got := must[any](t)(jobline.PushAndWait[any](ctx, client, queue, 1, named("other"))); got != nil {
		t.Errorf("got %v", got)
	}
}

// outcomes is what a handler returns on each attempt of a job, and what its end must be.
func TestOutcomesOfHandlers(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	quick := &jobline.Backoff{Fixed: true, Base: time.Millisecond}
	cases := map[string]struct {
		handler func(attempt, call int) error
		state   jobline.JobState
		calls   int32
		is      string // in the message of the end
	}{
		"done":       {func(int, int) error { return nil }, jobline.StateCompleted, 1, ""},
		"error":      {func(int, int) error { return errors.New("broken") }, jobline.StateDead, 3, "broken"},
		"then-done":  {func(attempt, _ int) error { return map[bool]error{true: errors.New("x")}[attempt < 2] }, jobline.StateCompleted, 2, ""},
		"retry":      {func(attempt, _ int) error { return ifErr(attempt < 3, jobline.Retry(time.Millisecond)) }, jobline.StateCompleted, 3, ""},
		"snooze":     {func(_, call int) error { return ifErr(call < 3, jobline.Snooze(time.Millisecond)) }, jobline.StateCompleted, 3, ""},
		"cancel":     {func(int, int) error { return jobline.Cancel("not needed") }, jobline.StateCancelled, 1, "not needed"},
		"dead":       {func(int, int) error { return fmt.Errorf("wrapped: %w", jobline.Dead("no address")) }, jobline.StateDead, 1, "no address"},
		"dead-cause": {func(int, int) error { return jobline.Dead("why").Because(io.ErrUnexpectedEOF) }, jobline.StateDead, 1, "why: unexpected EOF"},
		"panic":      {func(int, int) error { panic("oh no") }, jobline.StateDead, 3, "panic: oh no"},
		"limited": {func(_, call int) error {
			return ifErr(call < 2, jobline.RateLimited("", time.Now().Add(time.Millisecond)))
		}, jobline.StateCompleted, 2, ""},
	}
	calls := map[string]*atomic.Int32{}
	for name, one := range cases {
		count := &atomic.Int32{}
		calls[name] = count
		jobline.Handle(worker, queue, name, func(_ context.Context, job *jobline.Job[int]) (int, error) {
			return 1, one.handler(job.Attempt, int(count.Add(1)))
		})
	}
	start(t, worker)
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{Name: name, Backoff: quick}))
			end := must[jobline.JobEnd](t)(client.WaitOne(ctx, pushed.ID))
			if end.State != one.state || calls[name].Load() != one.calls {
				t.Errorf("%v after %d calls: %+v", end.State, calls[name].Load(), end.Error)
			}
			if one.is != "" && !strings.Contains(end.Err().Error(), one.is) {
				t.Errorf("the end says %q, not %q", end.Err(), one.is)
			}
			if name == "panic" && !strings.Contains(end.Error.Stack, "worker_test.go") {
				t.Errorf("the stack is %q", end.Error.Stack)
			}
		})
	}
}

func ifErr(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

func TestUnreadablePayloadAndHugeResultFailTheAttempt(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "typed", func(context.Context, *jobline.Job[sum]) (int, error) { return 1, nil })
	jobline.Handle(worker, queue, "huge", func(context.Context, *jobline.Job[[]byte]) ([]byte, error) { return make([]byte, 2<<20), nil })
	jobline.Handle(worker, queue, "goexit", func(context.Context, *jobline.Job[[]byte]) (int, error) {
		var none sync.WaitGroup
		none.Add(1)
		go func() { none.Done() }()
		none.Wait()
		panic(errors.New("as an error"))
	})
	start(t, worker)
	for name, payload := range map[string]any{"typed": "text", "huge": 1, "goexit": 1} {
		_, err := jobline.PushAndWait[int](ctx, client, queue, payload, &jobline.PushOptions{Name: name, MaxAttempts: 1})
		var e *jobline.Error
		if !errors.Is(err, jobline.ErrJobDead) || !errors.As(err, &e) || e.End == nil || e.Reason != "MAX_ATTEMPTS_EXCEEDED" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	began, cause := make(chan struct{}), make(chan error, 1)
	jobline.Handle(worker, queue, "", func(ctx context.Context, _ *jobline.Job[int]) (int, error) {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return 0, ctx.Err()
	})
	start(t, worker)
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, nil))
	<-began
	admin := joblinev1.NewJobAdminServiceClient(client.Conn())
	must[*joblinev1.CancelJobsResponse](t)(admin.CancelJobs(ctx, &joblinev1.CancelJobsRequest{Jobs: &joblinev1.JobSelection{Ids: []uint64{pushed.ID}}}))
	if got := <-cause; got != jobline.StopCancelled {
		t.Errorf("the cause is %v", got)
	}
	end := must[jobline.JobEnd](t)(client.WaitOne(ctx, pushed.ID))
	if !errors.Is(end.Err(), jobline.ErrJobCancelled) {
		t.Errorf("it ended as %+v", end)
	}
}

func TestTimeoutEndsTheAttempt(t *testing.T) {
	t.Parallel()
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "", func(ctx context.Context, _ *jobline.Job[int]) (int, error) {
		if _, has := ctx.Deadline(); !has {
			return 0, jobline.Dead("no deadline")
		}
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	start(t, worker)
	_, err := jobline.PushAndWait[int](ctx, client, queue, 1, &jobline.PushOptions{Timeout: time.Second, MaxAttempts: 1})
	var e *jobline.Error
	if !errors.As(err, &e) || e.End == nil || e.End.Error == nil || e.End.Error.Type != "timeout" {
		t.Fatalf("got %v", err)
	}
}

func TestLongHandlerKeepsItsLease(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	var calls atomic.Int32
	jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[int]) (int32, error) {
		n := calls.Add(1)
		until := time.Now().Add(3 * time.Second)
		for time.Now().Before(until) { // busy, three leases long
		}
		return n, nil
	})
	start(t, worker)
	got := must[int32](t)(jobline.PushAndWait[int32](ctx, client, queue, 1, &jobline.PushOptions{Lease: time.Second}))
	if got != 1 || calls.Load() != 1 {
		t.Fatalf("it ran %d times", calls.Load())
	}
}

// No second try would change the answer.
func TestMoreHandlersThanAStreamMayHaveEndTheWorker(t *testing.T) {
	t.Parallel()
	worker := newWorker(t, jobline.WorkerOptions{})
	for number := range 1_001 {
		jobline.Handle(worker, "q", fmt.Sprint("n", number), func(context.Context, *jobline.Job[[]byte]) ([]byte, error) {
			return nil, nil
		})
	}
	if err := worker.Run(t.Context()); !errors.Is(err, jobline.ErrTooLarge) {
		t.Fatalf("it ended with %v", err)
	}
}
