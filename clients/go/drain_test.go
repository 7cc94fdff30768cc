package jobline_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

func TestDrainFinishesReleasesAndRepeatsNothing(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	const jobs = 2_000
	runs := make([]atomic.Int32, jobs)
	newOne := func() *jobline.Worker {
		worker := newWorker(t, jobline.WorkerOptions{Concurrency: 8, Window: 300})
		jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (jobline.NoResult, error) {
			time.Sleep(time.Duration(job.Payload%7) * time.Millisecond)
			runs[job.Payload].Add(1)
			return jobline.NoResult{}, nil
		})
		return worker
	}
	var news []jobline.NewJob
	for i := range jobs {
		news = append(news, jobline.NewJob{Payload: i})
	}
	pushed := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, news, nil))
	for range 5 {
		worker := newOne()
		stop := start(t, worker)
		eventually(t, "some jobs are done", func() bool { return worker.Stats().Done > 50 })
		stop()
		if stats := worker.Stats(); stats.Running != 0 || stats.Waiting != 0 || stats.Lost != 0 {
			t.Errorf("after the drain: %+v", stats)
		}
	}
	start(t, newOne())
	ids := make([]uint64, jobs)
	for i, one := range pushed {
		ids[i] = one.ID
	}
	for end, err := range client.Wait(ctx, ids...) {
		if err != nil || end.Err() != nil {
			t.Fatalf("%+v: %v", end, err)
		}
	}
	for i := range runs {
		if n := runs[i].Load(); n != 1 {
			t.Errorf("job %d ran %d times", i, n)
		}
	}
}

func TestDrainCancelsThenReleases(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	polite, stubborn := make(chan error, 1), make(chan struct{})
	defer close(stubborn)
	worker := newWorker(t, jobline.WorkerOptions{SoftStop: 50 * time.Millisecond, HardStop: 100 * time.Millisecond})
	jobline.Handle(worker, queue, "polite", func(ctx context.Context, _ *jobline.Job[int]) (int, error) {
		<-ctx.Done()
		polite <- context.Cause(ctx)
		return 0, ctx.Err()
	})
	jobline.Handle(worker, queue, "stubborn", func(context.Context, *jobline.Job[int]) (int, error) {
		<-stubborn
		return 0, nil
	})
	stop := start(t, worker)
	var ids []uint64
	for _, name := range []string{"polite", "stubborn"} {
		ids = append(ids, must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{Name: name})).ID)
	}
	eventually(t, "both run", func() bool { return worker.Stats().Running == 2 })
	stop()
	if cause := <-polite; cause != jobline.StopWorker {
		t.Errorf("the cause is %v", cause)
	}
	next := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(next, queue, jobline.AnyName, func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Attempt, nil })
	start(t, next)
	for end, err := range client.Wait(ctx, ids...) {
		if err != nil || string(end.Result) != "1" {
			t.Errorf("it ended as %+v: %v", end, err)
		}
	}
}

func TestContextEndAndIdleEndTheRun(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	run := func(ctx context.Context, options jobline.WorkerOptions) error {
		worker := newWorker(t, options)
		jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[any]) (int, error) { return 1, nil })
		return worker.Run(ctx)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := run(ended, jobline.WorkerOptions{}); err != nil {
		t.Error(err)
	}
	must[jobline.Pushed](t)(client.Push(ctx, queue, 1, nil))
	if err := run(ctx, jobline.WorkerOptions{ExitWhenIdle: 100 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if err := run(ctx, jobline.WorkerOptions{Version: "?"}); !errors.Is(err, jobline.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}

// lines keeps what a worker logs.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func TestStuckHandlerIsReplacedAndLogged(t *testing.T) {
	t.Parallel()
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	log, free := &lines{}, make(chan struct{})
	worker := newWorker(t, jobline.WorkerOptions{
		Concurrency: 1, CancelGrace: 50 * time.Millisecond, HealthAddress: ":0", Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	jobline.Handle(worker, queue, "stuck", func(context.Context, *jobline.Job[int]) (int, error) {
		<-free
		return 0, nil
	})
	jobline.Handle(worker, queue, "quick", func(context.Context, *jobline.Job[int]) (int, error) { return 7, nil })
	start(t, worker)
	stuck := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{Name: "stuck", Timeout: time.Second, MaxAttempts: 1}))
	if end := must[jobline.JobEnd](t)(client.WaitOne(ctx, stuck.ID)); !errors.Is(end.Err(), jobline.ErrJobDead) {
		t.Errorf("it ended as %+v", end)
	}
	got := must[int](t)(jobline.PushAndWait[int](ctx, client, queue, 1, &jobline.PushOptions{Name: "quick"}))
	if got != 7 || worker.Stats().Stuck != 1 || !log.has("ignores its end") || !log.has("drain_test.go") {
		t.Errorf("got %d, stats %+v", got, worker.Stats())
	}
	if _, said := ask(t, "GET", worker.HealthAddress(), "/metrics"); !strings.Contains(said, "jobline_worker_abandoned_handlers_total 1\n") {
		t.Errorf("the metrics are %s", said)
	}
	close(free)
	eventually(t, "the stuck handler is gone", func() bool { return worker.Stats().Stuck == 0 })
}
