package jobline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

var soon = &jobline.Backoff{Fixed: true, Base: time.Millisecond}

func TestCheckpointReachesTheNextAttempt(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		at := 0
		has, err := job.Checkpoint(&at)
		if err != nil {
			return 0, err
		}
		if has != (job.Attempt > 1) || at != 10*(job.Attempt-1) {
			return 0, jobline.Dead(fmt.Sprintf("attempt %d found %d", job.Attempt, at))
		}
		if err := job.Progress(50, "half"); err != nil {
			return 0, err
		}
		job.Log(jobline.LogWarning, "line \xff of an attempt")
		if err := job.SaveCheckpoint(10 * job.Attempt); err != nil {
			return 0, err
		}
		return at, ifErr(job.Attempt < 3, errors.New("again"))
	})
	start(t, worker)
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{Backoff: soon}))
	end := must[jobline.JobEnd](t)(client.WaitOne(ctx, pushed.ID))
	if string(end.Result) != "20" {
		t.Fatalf("it ended as %+v", end.Error)
	}
	admin := joblinev1.NewJobAdminServiceClient(client.Conn())
	eventually(t, "three lines in the log", func() bool {
		log := must[*joblinev1.GetJobLogsResponse](t)(admin.GetJobLogs(ctx, &joblinev1.GetJobLogsRequest{Id: pushed.ID}))
		return len(log.GetLines()) == 3
	})
}

func TestPhasesRunOnce(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	var parsed atomic.Int32
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		rows, err := jobline.RunPhase(job, "parse", func() (int, error) { return int(parsed.Add(1)) * 100, nil })
		if err != nil {
			return 0, err
		}
		if job.Attempt == 1 {
			return 0, errors.New("the store is away")
		}
		return jobline.RunPhase(job, "store", func() (int, error) { return rows + 1, nil })
	})
	start(t, worker)
	got := must[int](t)(jobline.PushAndWait[int](ctx, client, queue, 1, &jobline.PushOptions{Backoff: soon, Phases: []string{"parse", "store"}}))
	if got != 101 || parsed.Load() != 1 {
		t.Fatalf("got %d after %d runs of the phase", got, parsed.Load())
	}
}

func TestJobWaitsForChildren(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "part", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload * 2, nil })
	jobline.Handle(worker, queue, "whole", func(ctx context.Context, job *jobline.Job[int]) (int, error) {
		part := func(n int) jobline.FlowJob {
			return jobline.FlowJob{Queue: queue, Payload: n, Options: jobline.PushOptions{Name: "part"}}
		}
		if has, _ := job.Checkpoint(new(bool)); !has {
			return 0, errors.Join(job.SaveCheckpoint(true), jobline.WaitFor(part(1), part(20)))
		}
		children, err := job.Children(ctx)
		total := 0
		for _, child := range children {
			var n int
			_, err = fmt.Sscan(string(child.Result), &n)
			total += n
		}
		return total, err
	})
	jobline.Handle(worker, queue, "spawner", func(ctx context.Context, job *jobline.Job[int]) (uint64, error) {
		pushed, err := job.Spawn(ctx, queue, 7, &jobline.PushOptions{Name: "part"})
		return pushed.ID, errors.Join(err, ifErr(job.Attempt == 1, errors.New("again")))
	})
	start(t, worker)
	if got := must[int](t)(jobline.PushAndWait[int](ctx, client, queue, 1, &jobline.PushOptions{Name: "whole"})); got != 42 {
		t.Errorf("got %d", got)
	}
	id := must[uint64](t)(jobline.PushAndWait[uint64](ctx, client, queue, 1, &jobline.PushOptions{Name: "spawner", Backoff: soon}))
	if end := must[jobline.JobEnd](t)(client.WaitOne(ctx, id)); string(end.Result) != "14" {
		t.Errorf("the spawned job ended as %+v", end)
	}
	ids := must[[]uint64](t)(client.PushFlow(ctx, jobline.FlowJob{Queue: queue, Options: jobline.PushOptions{Name: "part"}, Payload: 1,
		Children: []jobline.FlowJob{{Queue: queue, Payload: 2, Options: jobline.PushOptions{Name: "part"}}}}))
	for end, err := range client.Wait(ctx, ids...) {
		if err != nil || end.Err() != nil {
			t.Errorf("%+v: %v", end, err)
		}
	}
}

func TestBatchHandlerAnswersEachJob(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	var sizes []int
	var mu sync.Mutex
	options := &jobline.BatchHandlerOptions{Size: 10, Wait: 20 * time.Millisecond}
	jobline.HandleBatch(worker, queue, "", options, func(_ context.Context, batch *jobline.Batch[int, int]) error {
		mu.Lock()
		sizes = append(sizes, len(batch.Jobs))
		mu.Unlock()
		for _, job := range batch.Jobs {
			switch job.Payload {
			case 3:
				batch.Fail(job, jobline.Dead("three"))
			case 4: // forgotten
			default:
				batch.Done(job, job.Payload+1)
			}
		}
		return nil
	})
	start(t, worker)
	var jobs []jobline.NewJob
	for i := range 25 {
		jobs = append(jobs, jobline.NewJob{Payload: i})
	}
	pushed := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, jobs, &jobline.PushManyOptions{PushOptions: jobline.PushOptions{MaxAttempts: 1}}))
	for i, one := range pushed {
		end := must[jobline.JobEnd](t)(client.WaitOne(ctx, one.ID))
		if isDead := end.State == jobline.StateDead; isDead != (i == 3 || i == 4) {
			t.Errorf("job %d ended as %+v", i, end)
		} else if !isDead && string(end.Result) != fmt.Sprint(i+1) {
			t.Errorf("job %d returned %s", i, end.Result)
		}
	}
	if slices.Max(sizes) != 10 {
		t.Errorf("batches of %v", sizes)
	}
}

func TestGroupRunsInOrderAndEntitiesAnswer(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	balance := 0 // one at a time: no lock
	jobline.Handle(worker, queue, "deposit", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		if job.Group != "a-1" {
			return 0, jobline.Dead("another group: " + job.Group)
		}
		balance += job.Payload
		return balance, nil
	})
	start(t, worker)
	account := client.Entity(queue, "a-1", nil)
	for i := 1; i <= 20; i++ {
		must[jobline.Pushed](t)(account.Push(ctx, "deposit", 1, nil))
	}
	if got := must[int](t)(jobline.Call[int](ctx, account, "deposit", 22, nil)); got != 42 {
		t.Errorf("got %d", got)
	}
}

func TestMiddlewareAndTraceContextTravel(t *testing.T) {
	tracing := propagation.TraceContext{}
	client := newClient(t, &jobline.ClientOptions{Propagator: tracing, Middleware: []jobline.PushMiddleware{
		func(next jobline.PushFunc) jobline.PushFunc {
			return func(ctx context.Context, jobs []*jobline.Outgoing) ([]jobline.Pushed, error) {
				for _, job := range jobs {
					job.SetHeader("tenant", "acme")
				}
				return next(ctx, jobs)
			}
		},
	}})
	ctx, queue := newContext(t), newQueue(t)
	var seen atomic.Int32
	worker := newWorker(t, jobline.WorkerOptions{Propagator: tracing, Middleware: []jobline.Middleware{
		func(next jobline.Handler) jobline.Handler {
			return func(ctx context.Context, jobs []*jobline.LeasedJob) error {
				if jobs[0].Headers()["tenant"] == "acme" {
					seen.Add(1)
				}
				return next(ctx, jobs)
			}
		},
	}})
	jobline.Handle(worker, queue, "", func(ctx context.Context, _ *jobline.Job[int]) (string, error) {
		return trace.SpanContextFromContext(ctx).TraceID().String(), nil
	})
	start(t, worker)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled})
	ctx = trace.ContextWithSpanContext(ctx, span)
	if got := must[string](t)(jobline.PushAndWait[string](ctx, client, queue, 1, nil)); got != span.TraceID().String() {
		t.Errorf("the handler's trace is %s", got)
	}
	lot := must[jobline.Lot](t)(client.PushPayloads(ctx, queue, [][]byte{[]byte("1"), []byte("2")}, nil))
	must[jobline.JobEnd](t)(client.WaitOne(ctx, lot.FirstID+1))
	if lot.Count != 2 || seen.Load() < 2 {
		t.Errorf("%d jobs had the header", seen.Load())
	}
}

func TestPartialsReachThoseWhoWait(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	isWatched := make(chan struct{})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		err := job.Partial("one")
		<-isWatched
		return 3, errors.Join(err, job.Partial("two"))
	})
	start(t, worker)
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, nil))
	var pieces []string
	for piece, err := range client.Partials(ctx, pushed.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if pieces = append(pieces, string(piece.Data)); len(pieces) == 1 {
			close(isWatched)
		}
	}
	if !slices.Equal(pieces, []string{`"one"`, `"two"`}) {
		t.Errorf("got %v", pieces)
	}
}

func TestBatchesAndSchedules(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	called := make(chan string, 1)
	jobline.Handle(worker, queue, "", func(context.Context, *jobline.Job[any]) (int, error) { return 1, nil })
	jobline.Handle(worker, queue, "callback", func(_ context.Context, job *jobline.Job[string]) (int, error) {
		called <- job.Payload
		return 1, nil
	})
	start(t, worker)
	callback := &jobline.Callback{Queue: queue, Payload: "all done", Options: jobline.PushOptions{Name: "callback"}}
	batch := must[*joblinev1.Batch](t)(client.CreateBatch(ctx, &jobline.BatchOptions{Name: "b", OnSuccess: callback}))
	must[jobline.Lot](t)(client.PushPayloads(ctx, queue, [][]byte{nil, nil, nil}, &jobline.PushManyOptions{PushOptions: jobline.PushOptions{Batch: batch.GetId()}}))
	must[*joblinev1.Batch](t)(client.CloseBatch(ctx, batch.GetId()))
	if got := <-called; got != "all done" {
		t.Errorf("got %q", got)
	}
	if got := must[*joblinev1.Batch](t)(client.GetBatch(ctx, batch.GetId())); got.GetDone() != 3 {
		t.Errorf("got %v", got)
	}
	must[*joblinev1.Schedule](t)(client.UpsertSchedule(ctx, queue, jobline.Schedule{Queue: queue, Every: time.Hour, Payload: 1}))
	id := must[uint64](t)(client.TriggerSchedule(ctx, queue, "a test"))
	must[jobline.JobEnd](t)(client.WaitOne(ctx, id))
	if err := client.DeleteSchedule(ctx, queue, "a test"); err != nil {
		t.Error(err)
	}
	if _, err := client.GetSchedule(ctx, queue); !errors.Is(err, jobline.ErrScheduleNotFound) {
		t.Errorf("got %v", err)
	}
}
