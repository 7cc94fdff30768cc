package jobline_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// pushFragile pushes 20 jobs: any attempt, and any lost lease, is their last one.
func pushFragile(t *testing.T, client *jobline.Client, queue string) (ids []uint64) {
	t.Helper()
	news := make([]jobline.NewJob, 20)
	for i := range news {
		news[i].Payload = i
	}
	options := &jobline.PushManyOptions{PushOptions: jobline.PushOptions{MaxAttempts: 1, MaxStalls: jobline.None}}
	for _, one := range must[[]jobline.Pushed](t)(client.PushMany(newContext(t), queue, news, options)) {
		ids = append(ids, one.ID)
	}
	return ids
}

// calling has a worker call a service: the first call succeeds, then so many fail.
func calling(worker *jobline.Worker, queue string, failures int64) {
	var calls atomic.Int64
	jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[int]) (jobline.NoResult, error) {
		if n := calls.Add(1); n > 1 && n <= 1+failures {
			return jobline.NoResult{}, errors.New("the database is down")
		}
		return jobline.NoResult{}, nil
	})
}

// statesOf waits until all jobs have ended, and counts the states.
func statesOf(t *testing.T, client *jobline.Client, ids []uint64) (completed, dead int) {
	t.Helper()
	for end, err := range client.Wait(newContext(t), ids...) {
		switch {
		case err != nil:
			t.Fatal(err)
		case end.State == jobline.StateCompleted:
			completed++
		case end.State == jobline.StateDead:
			dead++
		}
	}
	return completed, dead
}

// What a pause gives back has used neither an attempt nor a stall: another worker completes it.
func TestPauseAfterFailuresGivesBackWhatHasNotBegun(t *testing.T) {
	client, queue, log := newClient(t, nil), newQueue(t), &lines{}
	worker := newWorker(t, jobline.WorkerOptions{
		Concurrency: 1, Window: 20, PauseAfterFailures: 3, FailurePause: time.Hour,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	calling(worker, queue, 20)
	ids := pushFragile(t, client, queue)
	stop := start(t, worker)
	eventually(t, "it pauses and gives back what waits", func() bool {
		stats := worker.Stats()
		return stats.Paused && stats.Failed == 3 && stats.Waiting == 0
	})
	if stats := worker.Stats(); stats.Done != 1 || !log.has("attempts in a row have failed") {
		t.Errorf("in the pause: %+v", stats)
	}
	other := newWorker(t, jobline.WorkerOptions{Concurrency: 1, Window: 20})
	calling(other, queue, 0)
	start(t, other)
	if completed, dead := statesOf(t, client, ids); completed != 17 || dead != 3 {
		t.Errorf("%d are completed, %d are dead", completed, dead)
	}
	stop()
	if stats := worker.Stats(); stats.Done != 1 || stats.Failed != 3 || stats.Lost != 0 || stats.Paused {
		t.Errorf("in the end: %+v", stats)
	}
}

func TestAfterAPauseOneMoreFailureIsEnough(t *testing.T) {
	client, queue, log := newClient(t, nil), newQueue(t), &lines{}
	worker := newWorker(t, jobline.WorkerOptions{
		Concurrency: 1, Window: 20, PauseAfterFailures: 3, FailurePause: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	calling(worker, queue, 4)
	ids := pushFragile(t, client, queue)
	stop := start(t, worker)
	if completed, dead := statesOf(t, client, ids); completed != 16 || dead != 4 {
		t.Errorf("%d are completed, %d are dead", completed, dead)
	}
	stop()
	if pauses := strings.Count(log.text.String(), "attempts=3 pause=100ms"); pauses != 2 {
		t.Errorf("%d pauses: %s", pauses, log.text.String())
	}
}

// A pause after failures is longer here than the time after which an idle worker ends: it goes on to the jobs that
// come after the pause, and ends when it is idle then.
func TestAPauseIsNotIdle(t *testing.T) {
	t.Parallel()
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	const idle, pause = 400 * time.Millisecond, 1200 * time.Millisecond
	worker := newWorker(t, jobline.WorkerOptions{
		Concurrency: 1, Window: 20, PauseAfterFailures: 1, FailurePause: pause, ExitWhenIdle: idle,
	})
	var paused, last time.Time // the handler runs one job at a time
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (jobline.NoResult, error) {
		last = time.Now()
		if paused.IsZero() {
			paused = last
			return jobline.NoResult{}, errors.New("the database is down")
		}
		return jobline.NoResult{}, nil
	})
	ids := pushFragile(t, client, queue)
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	if stats := worker.Stats(); stats.Done != 19 || stats.Failed != 1 || stats.Lost != 0 {
		t.Fatalf("%+v", stats)
	}
	if completed, dead := statesOf(t, client, ids); completed != 19 || dead != 1 {
		t.Errorf("%d are completed, %d are dead", completed, dead)
	}
	if last.Sub(paused) < pause || ended.Sub(last) < idle {
		t.Errorf("jobs again after %s, ended %s after the last one", last.Sub(paused), ended.Sub(last))
	}
}

// With nothing to do after a pause the worker is idle from the pause's end on, not from its last job.
func TestIdleTimeBeginsAtTheEndOfAPause(t *testing.T) {
	t.Parallel()
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	const idle, pause = 300 * time.Millisecond, 300 * time.Millisecond
	worker := newWorker(t, jobline.WorkerOptions{PauseAfterFailures: 1, FailurePause: pause, ExitWhenIdle: idle})
	var failed time.Time
	jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[int]) (jobline.NoResult, error) {
		failed = time.Now()
		return jobline.NoResult{}, errors.New("the database is down")
	})
	must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{MaxAttempts: 1}))
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(failed); took < idle+pause {
		t.Errorf("it ended %s after the failure", took)
	}
}

func TestTimeoutIsAFailureAndOtherOutcomesAreNone(t *testing.T) {
	t.Parallel()
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{Concurrency: 1, PauseAfterFailures: 1, FailurePause: time.Hour})
	jobline.Handle(worker, queue, "", func(ctx context.Context, job *jobline.Job[string]) (jobline.NoResult, error) {
		switch job.Payload {
		case "snooze":
			return jobline.NoResult{}, jobline.Snooze(time.Hour)
		case "dead":
			return jobline.NoResult{}, jobline.Dead("hopeless")
		}
		<-ctx.Done()
		return jobline.NoResult{}, context.Cause(ctx)
	})
	start(t, worker)
	for _, payload := range []string{"snooze", "dead"} {
		must[jobline.Pushed](t)(client.Push(ctx, queue, payload, nil))
	}
	eventually(t, "both are settled", func() bool { return worker.Stats().Failed+worker.Stats().Released == 2 })
	if worker.Stats().Paused {
		t.Error("it pauses without a failure")
	}
	must[jobline.Pushed](t)(client.Push(ctx, queue, "slow", &jobline.PushOptions{Timeout: time.Second}))
	eventually(t, "it pauses after a timeout", func() bool { return worker.Stats().Paused })
}

func TestBoundsOfThePauseAreTold(t *testing.T) {
	for _, options := range []jobline.WorkerOptions{
		{PauseAfterFailures: -1}, {PauseAfterFailures: 1_000_001}, {FailurePause: -1}, {FailurePause: 25 * time.Hour},
	} {
		if _, err := jobline.NewWorker("", &options); !errors.Is(err, jobline.ErrInvalidArgument) {
			t.Errorf("%+v: %v", options, err)
		}
	}
}
