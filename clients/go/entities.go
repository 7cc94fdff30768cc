package jobline

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// IdleReason is why a worker lets go of the state of an entity.
type IdleReason string

const (
	// IdleUnused: it had no job for EntityOptions.IdleAfter.
	IdleUnused IdleReason = "idle"
	// IdleEvicted: the worker keeps EntityOptions.MaxActive, and this one was not used for the longest time.
	IdleEvicted IdleReason = "evicted"
	// IdleLost: what it holds may be wrong: a job of it failed, was released, cancelled or lost its lease, or
	// another worker has had a job of it.
	IdleLost IdleReason = "lost"
	// IdleStopping: the worker stops.
	IdleStopping IdleReason = "stopping"
)

const (
	// Time that one OnIdle has, and all of them when the worker stops.
	onIdleTime = 10 * time.Second
	// States whose OnIdle runs at a time. Beyond it a job that needs a new state waits.
	leavingMax = 64
	// Time between two looks for idle states while more are due than may leave at a time.
	sweepAgain = 50 * time.Millisecond
)

// EntityOptions say how the states of entities come and go. The zero value begins with a zero S.
type EntityOptions[S any] struct {
	// OnActivate makes the state before the first job of an entity on this worker, and anew after it may have been
	// wrong: it loads what the methods need. Its error fails the job. Default: new(S).
	OnActivate func(ctx context.Context, key string) (*S, error)
	// OnIdle is called once the worker lets go of a state, to close what it holds; no job of the entity runs
	// meanwhile on this worker. It has 10 s. Do not save state here unless what you save to refuses older writers:
	// another worker may have had a later job.
	OnIdle func(ctx context.Context, key string, state *S, reason IdleReason) error
	// MaxActive is how many states the worker keeps; default 1,000. IdleAfter is how long an unused one stays;
	// default 5 min.
	MaxActive int
	IdleAfter time.Duration
}

// Entities are the entities of a kind on a worker, see [HandleEntity].
type Entities[S any] struct {
	worker  *Worker
	kind    string
	options EntityOptions[S]
	log     *slog.Logger

	mu      sync.Mutex
	active  map[string]*list.Element // of *activeEntity[S]
	order   *list.List               // the least recently used first
	leaving map[string]chan struct{} // the newest OnIdle of each key
	count   int                      // of OnIdle that run
	left    chan struct{}            // closed, and made anew, when one has ended
	timer   *time.Timer
}

type activeEntity[S any] struct {
	key       string
	state     *S
	isRunning bool
	usedAt    time.Time
}

// NewEntities has a worker keep the state of entities of a kind, the queue of their jobs: an S for each key. Add
// methods by [HandleEntity], before the worker runs. Options may be nil.
func NewEntities[S any](worker *Worker, kind string, options *EntityOptions[S]) *Entities[S] {
	e := &Entities[S]{
		worker: worker, kind: kind, log: worker.options.Logger,
		active: map[string]*list.Element{}, order: list.New(), leaving: map[string]chan struct{}{}, left: make(chan struct{}),
	}
	if options != nil {
		e.options = *options
	}
	e.options.MaxActive = or(max(e.options.MaxActive, 0), 1_000)
	e.options.IdleAfter = or(max(e.options.IdleAfter, 0), 5*time.Minute)
	worker.mu.Lock()
	defer worker.mu.Unlock()
	worker.entities = append(worker.entities, e.close)
	return e
}

// HandleEntity makes a function a method of entities: the handler of the jobs of their kind with that name, as
// [Client.Entity] pushes them. They run one at a time for each key, and prefer the worker that had the last one,
// where they find the state as it left it: after a job that completed, and until another worker has one.
// After anything else it is made anew. Save what must not be lost before the method returns: the worker that has the
// next job may be another one. For the rest see [Handle].
func HandleEntity[S, T, R any](entities *Entities[S], method string, handler func(ctx context.Context, state *S, job *Job[T]) (R, error)) {
	Handle(entities.worker, entities.kind, method, func(ctx context.Context, job *Job[T]) (result R, err error) {
		active, err := entities.activate(ctx, job.LeasedJob)
		if err != nil {
			return result, err
		}
		isKept := false // a panic drops it too
		defer func() { entities.end(active, isKept) }()
		result, err = handler(ctx, active.state, job)
		isKept = err == nil && job.Stopped() == nil
		return result, err
	})
}

// activate returns the entity of a job: the one in memory if what it holds is true, else a new one, once the one
// before is gone.
func (e *Entities[S]) activate(ctx context.Context, job *LeasedJob) (*activeEntity[S], error) {
	key := job.Group
	if key == "" {
		return nil, refuse("group", "a job of an entity of %q has its key as group", e.kind)
	}
	e.mu.Lock()
	if at := e.active[key]; at != nil {
		// No other worker has had a job since, and there was no attempt at this one.
		found := at.Value.(*activeEntity[S])
		if job.Reason == joblineFirst && job.ContinuesGroup && !found.isRunning {
			found.isRunning = true
			e.order.MoveToBack(at)
			e.mu.Unlock()
			return found, nil
		}
	}
	e.drop(key, IdleLost)
	leaving := e.leaving[key]
	e.mu.Unlock()
	if leaving != nil {
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := e.makeRoom(ctx); err != nil {
		return nil, err
	}
	return e.make(ctx, key)
}

func (e *Entities[S]) make(ctx context.Context, key string) (*activeEntity[S], error) {
	state := new(S)
	if e.options.OnActivate != nil {
		made, err := e.options.OnActivate(ctx, key)
		if err != nil {
			return nil, err
		}
		if made == nil {
			return nil, newError(ErrInvalidArgument, "OnActivate of %q returned neither a state nor an error", e.kind)
		}
		state = made
	}
	made := &activeEntity[S]{key: key, state: state, isRunning: true}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(key, IdleLost)
	e.active[key] = e.order.PushBack(made)
	return made, nil
}

// makeRoom lets go of the least recently used ones until one more may be made.
func (e *Entities[S]) makeRoom(ctx context.Context) error {
	for {
		e.mu.Lock()
		oldest := e.oldest()
		if len(e.active) < e.options.MaxActive || oldest == nil {
			e.mu.Unlock()
			return nil
		}
		if e.count < leavingMax {
			e.drop(oldest.key, IdleEvicted)
			e.mu.Unlock()
			continue
		}
		left := e.left
		e.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// oldest returns the least recently used entity without a job that runs, nil if there is none; the lock is held.
func (e *Entities[S]) oldest() *activeEntity[S] {
	for at := e.order.Front(); at != nil; at = at.Next() {
		if found := at.Value.(*activeEntity[S]); !found.isRunning {
			return found
		}
	}
	return nil
}

// end keeps an entity whose job has ended, or lets go of it.
func (e *Entities[S]) end(active *activeEntity[S], isKept bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	active.isRunning = false
	at := e.active[active.key]
	isNewest := at != nil && at.Value.(*activeEntity[S]) == active
	switch {
	case isKept && isNewest:
		active.usedAt = time.Now()
		e.order.MoveToBack(at)
		e.arm(e.options.IdleAfter)
	case isNewest:
		e.drop(active.key, IdleLost)
	default:
		e.leave(active, IdleLost)
	}
}

// drop removes an entity; one whose job still runs, as its lease was lost, leaves when that ends. The lock is held.
func (e *Entities[S]) drop(key string, reason IdleReason) {
	at := e.active[key]
	if at == nil {
		return
	}
	delete(e.active, key)
	e.order.Remove(at)
	if found := at.Value.(*activeEntity[S]); !found.isRunning {
		e.leave(found, reason)
	}
}

// leave calls OnIdle; the lock is held.
func (e *Entities[S]) leave(active *activeEntity[S], reason IdleReason) {
	if e.options.OnIdle == nil {
		return
	}
	ended := make(chan struct{})
	e.leaving[active.key] = ended
	e.count++
	go func() {
		e.letGo(active, reason)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.leaving[active.key] == ended {
			delete(e.leaving, active.key)
		}
		e.count--
		close(ended)
		close(e.left)
		e.left = make(chan struct{})
	}()
}

// letGo returns when OnIdle has ended, or its time is over.
func (e *Entities[S]) letGo(active *activeEntity[S], reason IdleReason) {
	ctx, cancel := context.WithTimeout(context.Background(), onIdleTime)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- e.onIdle(ctx, active, reason)
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		default:
			err = fmt.Errorf("it took longer than %s, and is not waited for", onIdleTime)
		}
	}
	if err != nil {
		e.log.Error("OnIdle of an entity failed", "kind", e.kind, "key", active.key, "reason", string(reason), "error", err)
	}
}

func (e *Entities[S]) onIdle(ctx context.Context, active *activeEntity[S], reason IdleReason) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: string(debug.Stack())}
		}
	}()
	return e.options.OnIdle(ctx, active.key, active.state, reason)
}
