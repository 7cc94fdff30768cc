package jobline

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// WorkerStats is what a worker has done since it started, and what it is doing.
type WorkerStats struct {
	// Done, Failed and Released are jobs by how they were settled: cancelled ones count as failed,
	// snoozed ones as released. Lost are outcomes that came too late.
	Done, Failed, Released, Lost int64
	// Running are jobs whose handlers run, Waiting those at hand that have not started. Stuck are
	// handlers that run on after their end.
	Running, Waiting, Stuck int
	// Connected: there is a stream. Paused: it takes no jobs for a while, after failures.
	Connected, Paused bool
}

// Worker runs jobs: handlers by queue and name, fed by one stream. Add handlers by [Handle] and
// [HandleBatch], then call Run once.
type Worker struct {
	target  string
	shows   *identity
	options WorkerOptions
	routes  map[routeKey]*route
	drain   *pacing.Drain
	wakes   chan struct{}

	mu          sync.Mutex
	run         *workerRun
	hasRun      bool
	isConnected bool
	connect     chan struct{}
	healthAt    string
	entities    []func() // let go of them
}

// NewWorker returns a worker of the server at target, as New has it. Options may be nil.
func NewWorker(target string, options *WorkerOptions) (*Worker, error) {
	target, err := targetOf(target)
	if err != nil {
		return nil, err
	}
	o := WorkerOptions{}
	if options != nil {
		o = *options
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	shows, err := o.identityOf(target)
	if err != nil {
		return nil, err
	}
	o.fill()
	o.Connection = Connection{} // what prints a worker prints no token
	return &Worker{
		target: target, shows: shows, options: o, routes: map[routeKey]*route{},
		drain: pacing.NewDrain(o.SoftStop, o.HardStop, o.ExitWhenIdle),
		wakes: make(chan struct{}, 1), connect: make(chan struct{}),
	}, nil
}

func (w *Worker) add(one *route) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := routeKey{one.queue, one.name}
	switch {
	case w.hasRun:
		panic("jobline: handlers are added before the worker runs")
	case w.routes[key] != nil:
		panic(fmt.Sprintf("jobline: a second handler for queue %q and name %q", one.queue, one.name))
	case w.options.Queues != nil && w.options.Queues[one.queue] == 0:
		panic(fmt.Sprintf("jobline: a handler for queue %q would get nothing: it is not among WorkerOptions.Queues", one.queue))
	}
	w.routes[key] = one
}

// Run runs jobs until ctx ends, Stop is called or a signal of StopSignals comes; then it drains:
// handlers may finish, then their contexts are cancelled, then the rest is released. It returns nil
// after a drain, and what makes a stream impossible: ErrInvalidArgument, ErrNotServed,
// ErrPermissionDenied, ErrUnauthenticated; a health port that is taken is ErrInvalidArgument. While there is no server it tries again. A worker runs
// once: ErrClosed.
//
// Handlers get the values of ctx, but not its end.
func (w *Worker) Run(ctx context.Context) error {
	opening, err := w.begin()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		w.drain.RequestFirstStop() // a signal may have ended ctx, and be one of StopSignals too
		w.wake()
	})()
	if len(w.options.StopSignals) > 0 {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, w.options.StopSignals...)
		defer close(signals)
		defer signal.Stop(signals)
		go func() {
			for range signals {
				w.Stop()
			}
		}()
	}
	run := newWorkerRun(ctx, w, opening)
	w.mu.Lock()
	w.run = run
	w.mu.Unlock()
	if w.options.HealthAddress != "" {
		listener, err := listenHealth(w.options.HealthAddress)
		if err != nil {
			return err
		}
		run.hasHealth = true
		defer serveHealth(run, listener).close()
		w.listensAt(listener.Addr().String())
	}
	defer letGoOfEntities(w.entities)
	return run.untilStopped()
}

func (w *Worker) listensAt(address string) {
	w.options.Logger.Info("health port", "address", address)
	w.mu.Lock()
	w.healthAt = address
	w.mu.Unlock()
}

// HealthAddress returns HOST:PORT of the worker's health port; "" without one, or before Run.
func (w *Worker) HealthAddress() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healthAt
}

func (w *Worker) begin() (*joblinev1.StreamOpen, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hasRun {
		return nil, newError(ErrClosed, "a worker runs once: make another one")
	}
	if len(w.routes) == 0 {
		return nil, refuse("handlers", "a worker needs at least one")
	}
	w.hasRun = true
	return w.opening(), nil
}

func (w *Worker) opening() *joblinev1.StreamOpen {
	host, _ := os.Hostname()
	o := &w.options
	open := &joblinev1.StreamOpen{
		Worker: &joblinev1.WorkerDescription{
			Id: or(o.ID, fmt.Sprintf("%s:%d", host, os.Getpid())), Host: host, Pid: int32(os.Getpid()),
			Version: o.Version, Labels: o.Labels, Language: "go/" + Version,
		},
		Lease: span(o.Lease), AcceptsRuns: true, MaxMessageBytes: messageBytesMax,
	}
	weights := map[string]int32{}
	for queue, weight := range o.Queues {
		weights[queue] = int32(weight)
	}
	for key, one := range w.routes {
		handler := &joblinev1.HandlerDescription{
			Queue: key.queue, Name: key.name, PayloadSchema: one.payload, ResultSchema: one.result,
		}
		if key.name == AnyName {
			handler.Name, handler.AnyName = "", true
		}
		open.Handlers = append(open.Handlers, handler)
		if _, isThere := weights[key.queue]; !isThere {
			weights[key.queue] = 0
		}
	}
	for queue, weight := range weights {
		open.Queues = append(open.Queues, &joblinev1.QueueWeight{Queue: queue, Weight: weight})
	}
	slices.SortFunc(open.Queues, func(a, b *joblinev1.QueueWeight) int {
		if a.GetQueue() < b.GetQueue() {
			return -1
		}
		return 1
	})
	return open
}

// Queues returns the queues that the worker takes from, sorted.
func (w *Worker) Queues() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	queues := slices.Collect(maps.Keys(w.options.Queues))
	for key := range w.routes {
		queues = append(queues, key.queue)
	}
	slices.Sort(queues)
	return slices.Compact(queues)
}

// Stop begins the drain, or its next stage if it has begun: finish, then cancel, then release. It
// returns at once; Run returns when it is done.
func (w *Worker) Stop() {
	w.drain.RequestStop()
	w.wake()
}

func (w *Worker) wake() {
	select {
	case w.wakes <- struct{}{}:
	default:
	}
}

// Connected is closed when the server has answered on a stream for the first time.
func (w *Worker) Connected() <-chan struct{} { return w.connect }

func (w *Worker) connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isConnected {
		w.isConnected = true
		close(w.connect)
	}
}

// Stats returns what the worker has done, and what it is doing.
func (w *Worker) Stats() WorkerStats {
	w.mu.Lock()
	run := w.run
	w.mu.Unlock()
	if run == nil {
		return WorkerStats{}
	}
	return run.stats()
}
