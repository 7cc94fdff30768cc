package jobline

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// WorkerOptions are the settings of a Worker. The zero value is plaintext with the defaults below.
type WorkerOptions struct {
	Connection

	// Concurrency is how many handlers run at once; default 16.
	Concurrency int
	// Window is how many jobs to have at hand, started ones included, ≤ 100,000; 0 follows the work,
	// None pauses. WindowBytes of their payloads; default 64 MiB.
	Window      int
	WindowBytes int64
	// Lease overrides the jobs' own, 1 s … 12 h. Leases are kept alive however long a handler takes.
	Lease time.Duration
	// Queues are all that the worker takes from, with weights 1 … 1,000; default those of its handlers,
	// alike.
	Queues map[string]int
	// ID and Labels are what operators see; default host and process id. Version is that of the
	// program, for PushOptions.MinWorkerVersion.
	ID      string
	Version string
	Labels  map[string]string
	// SoftStop is how long handlers may take to finish once the worker stops, default 20 s; HardStop how
	// long to end after their contexts are cancelled then, default 5 s. What is left is released.
	SoftStop, HardStop time.Duration
	// CancelGrace is how long a handler may run on when its job was cancelled or its lease is lost,
	// default 30 s. One that does is logged with its stack and counted as Stuck; another takes its place.
	CancelGrace time.Duration
	// ExitWhenIdle ends Run when the worker had no job for so long; default never.
	ExitWhenIdle time.Duration
	// StopSignals stop the worker, such as syscall.SIGTERM and os.Interrupt; a second one begins the next
	// stage at once. Default none: the program's context decides.
	StopSignals []os.Signal
	// Middleware wraps each call of a handler, the first outermost.
	Middleware []Middleware
	// Propagator reads the trace context from the headers of jobs; default that of the otel package.
	Propagator propagation.TextMapPropagator
	// TracerProvider makes a span of each call of a handler, which links to the producer's, or with
	// TraceAsChild is its child; default none.
	TracerProvider trace.TracerProvider
	TraceAsChild   bool
	// Logger gets connections, attempts that fail, and jobs that die; default slog.Default.
	Logger *slog.Logger
}

// WorkerStats is what a worker has done since it started, and what it is doing.
type WorkerStats struct {
	// Done, Failed and Released are jobs by how they were settled: cancelled ones count as failed,
	// snoozed ones as released. Lost are outcomes that came too late.
	Done, Failed, Released, Lost int64
	// Running are jobs whose handlers run, Waiting those at hand that have not started. Stuck are
	// handlers that run on after their end.
	Running, Waiting, Stuck int
	// Connected: there is a stream.
	Connected bool
}

// Worker runs jobs: handlers by queue and name, fed by one stream. Add handlers by [Handle] and
// [HandleBatch], then call Run once.
type Worker struct {
	target  string
	options WorkerOptions
	routes  map[routeKey]*route
	drain   *pacing.Drain
	wakes   chan struct{}

	mu          sync.Mutex
	run         *workerRun
	hasRun      bool
	isConnected bool
	connect     chan struct{}
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
	o.fill()
	return &Worker{
		target: target, options: o, routes: map[routeKey]*route{},
		drain: pacing.NewDrain(o.SoftStop, o.HardStop, o.ExitWhenIdle),
		wakes: make(chan struct{}, 1), connect: make(chan struct{}),
	}, nil
}

func (o *WorkerOptions) check() error {
	switch {
	case o.Concurrency < 0:
		return refuse("Concurrency", "must be at least 1, not %d", o.Concurrency)
	case o.Window < None || o.Window > pacing.WindowMax:
		return refuse("Window", "must be 1 … 100,000 or None, not %d", o.Window)
	case o.WindowBytes < 0:
		return refuse("WindowBytes", "must not be negative, and is %d", o.WindowBytes)
	case o.Lease != 0 && (o.Lease < time.Second || o.Lease > 12*time.Hour):
		return refuse("Lease", "must be 1 s … 12 h, not %s", o.Lease)
	}
	for _, span := range []time.Duration{o.SoftStop, o.HardStop, o.CancelGrace, o.ExitWhenIdle} {
		if span < 0 {
			return refuse("options", "times of a worker must not be negative, and one is %s", span)
		}
	}
	return nil
}

func (o *WorkerOptions) fill() {
	o.Concurrency = or(o.Concurrency, 16)
	switch o.Window {
	case 0:
		o.Window = -1 // follows the work
	case None:
		o.Window = 0
	}
	o.WindowBytes = or(o.WindowBytes, 64<<20)
	o.SoftStop = or(o.SoftStop, 20*time.Second)
	o.HardStop = or(o.HardStop, 5*time.Second)
	o.CancelGrace = or(o.CancelGrace, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
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
// ErrPermissionDenied, ErrUnauthenticated. While there is no server it tries again. A worker runs
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
	return run.untilStopped()
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
	for key := range w.routes {
		handler := &joblinev1.HandlerDescription{Queue: key.queue, Name: key.name}
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
