package jobline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// account counts in memory alone, which shows whether it is the same one.
type account struct{ total int }

// story is what happened to entities, in order.
type story struct {
	mu     sync.Mutex
	events []string
}

func (s *story) add(format string, arguments ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, arguments...))
}

func (s *story) has(event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.events, event)
}

func (s *story) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// accounts adds a kind with some methods to a worker.
func accounts(worker *jobline.Worker, kind string, s *story, options jobline.EntityOptions[account]) {
	options.OnActivate = func(_ context.Context, key string) (*account, error) {
		s.add("made %s", key)
		if key == "bad" {
			return nil, errors.New("cannot be loaded")
		}
		return &account{}, nil
	}
	if options.OnIdle == nil {
		options.OnIdle = func(_ context.Context, key string, state *account, reason jobline.IdleReason) error {
			s.add("%s leaves with %d: %s", key, state.total, reason)
			return nil
		}
	}
	entities := jobline.NewEntities(worker, kind, &options)
	jobline.HandleEntity(entities, "deposit", func(_ context.Context, state *account, job *jobline.Job[int]) (int, error) {
		state.total += job.Payload
		return state.total, nil
	})
	jobline.HandleEntity(entities, "fail", func(_ context.Context, state *account, _ *jobline.Job[int]) (int, error) {
		state.total = -1
		return 0, jobline.Cancel("it went wrong")
	})
	jobline.HandleEntity(entities, "panic", func(context.Context, *account, *jobline.Job[int]) (int, error) { panic("oops") })
}

func deposit(t *testing.T, client *jobline.Client, kind, key string, amount int) int {
	t.Helper()
	return must[int](t)(jobline.Call[int](newContext(t), client.Entity(kind, key, nil), "deposit", amount, nil))
}

func TestEntitiesStayInMemoryUntilTheyMayBeWrong(t *testing.T) {
	client, ctx, kind, s := newClient(t, nil), newContext(t), newQueue(t), &story{}
	worker := newWorker(t, jobline.WorkerOptions{})
	accounts(worker, kind, s, jobline.EntityOptions[account]{})
	stop := start(t, worker)
	if got := []int{deposit(t, client, kind, "a", 100), deposit(t, client, kind, "a", 20), deposit(t, client, kind, "b", 5)}; !slices.Equal(got, []int{100, 120, 5}) {
		t.Errorf("got %v", got)
	}
	for i, method := range []string{"fail", "panic"} {
		_, err := jobline.Call[int](ctx, client.Entity(kind, "a", nil), method, 0, &jobline.PushOptions{MaxAttempts: 1})
		if !errors.Is(err, jobline.ErrNotDone) {
			t.Errorf("got %v", err)
		}
		if got := deposit(t, client, kind, "a", i+1); got != i+1 {
			t.Errorf("after %s it has %d", method, got)
		}
	}
	if _, err := jobline.Call[int](ctx, client.Entity(kind, "bad", nil), "deposit", 1, &jobline.PushOptions{MaxAttempts: 1}); !errors.Is(err, jobline.ErrJobDead) {
		t.Errorf("got %v", err)
	}
	stray := must[jobline.Pushed](t)(client.Push(ctx, kind, 1, &jobline.PushOptions{Name: "deposit", MaxAttempts: 1}))
	if end := must[jobline.JobEnd](t)(client.WaitOne(ctx, stray.ID)); end.Error == nil || end.State != jobline.StateDead {
		t.Errorf("a job without a key ended as %+v", end)
	}
	stop()
	for _, event := range []string{"a leaves with -1: lost", "a leaves with 1: lost", "a leaves with 2: stopping", "b leaves with 5: stopping"} {
		if !s.has(event) {
			t.Errorf("no %q in %q", event, s.all())
		}
	}
}

func TestUnusedAndSurplusEntitiesLeave(t *testing.T) {
	client, kind, s := newClient(t, nil), newQueue(t), &story{}
	worker := newWorker(t, jobline.WorkerOptions{})
	accounts(worker, kind, s, jobline.EntityOptions[account]{MaxActive: 2, IdleAfter: 300 * time.Millisecond})
	start(t, worker)
	for i, key := range []string{"a", "b", "a", "c"} {
		deposit(t, client, kind, key, i+1)
	}
	eventually(t, "b has left first, then the others", func() bool {
		return s.has("b leaves with 2: evicted") && s.has("a leaves with 4: idle") && s.has("c leaves with 4: idle")
	})
}

func TestOnIdleThatFailsIsLoggedAndHoldsUpNothing(t *testing.T) {
	client, kind, log := newClient(t, nil), newQueue(t), &lines{}
	worker := newWorker(t, jobline.WorkerOptions{Logger: slog.New(slog.NewTextHandler(log, nil))})
	accounts(worker, kind, &story{}, jobline.EntityOptions[account]{MaxActive: 1, OnIdle: func(_ context.Context, key string, _ *account, _ jobline.IdleReason) error {
		if key == "panics" {
			panic("oops")
		}
		return errors.New("no luck")
	}})
	stop := start(t, worker)
	for _, key := range []string{"panics", "fails", "other"} {
		deposit(t, client, kind, key, 1)
	}
	stop()
	for _, part := range []string{"key=panics", "error=oops", "key=fails", "no luck", "reason=stopping"} {
		if !log.has(part) {
			t.Errorf("no %q in the log", part)
		}
	}
}

func TestJobsOfAnEntityRunOneAtATimeOverManyKeys(t *testing.T) {
	client, ctx, kind := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{})
	accounts(worker, kind, &story{}, jobline.EntityOptions[account]{MaxActive: 50})
	start(t, worker)
	const keys, calls = 20, 15
	var all sync.WaitGroup
	for key := range keys {
		all.Go(func() {
			entity := client.Entity(kind, fmt.Sprint(key), nil)
			var ids []uint64
			for range calls {
				pushed, err := entity.Push(ctx, "deposit", 1, nil)
				if err != nil {
					t.Error(err)
					return
				}
				ids = append(ids, pushed.ID)
			}
			for i, id := range ids {
				end, err := client.WaitOne(ctx, id)
				if err != nil || string(end.Result) != fmt.Sprint(i+1) {
					t.Errorf("call %d of %d: %+v, %v", i, key, end, err)
				}
			}
		})
	}
	all.Wait()
}
