package jobline

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// workerRun is the parts of a running worker, from its start to its stop.
//
//	reader      reads frames, routes jobs to the backlog, opens the next stream when one breaks
//	writer      sends frames of the session: settles, reports, heartbeats
//	supervisor  watchdog, window, batch waits, stuck handlers, the stages of a drain
//	runners     run handlers
//
// They share two things only: the session behind one lock, and the backlog. None of the first three
// runs a handler, so a handler that never returns keeps its lease.
type workerRun struct {
	log           *slog.Logger
	base          context.Context
	middleware    []Middleware
	tracing       workTracing
	clientOptions *ClientOptions
	codec         *Codec

	session *sharedSession
	runners *runners
	router  *router
	flows   *flowCalls
	loop    *streamLoop
	drain   *pacing.Drain
	grace   pacing.Grace[handlerKey]

	failures     *pacing.Failures // nil: no pauses
	failurePause time.Duration

	metrics   *workerMetrics
	hasHealth bool

	wakes      chan struct{} // the supervisor's
	hasStopped atomic.Bool   // some handler was asked to stop, and may still run
}

func newWorkerRun(ctx context.Context, w *Worker, opening *joblinev1.StreamOpen) *workerRun {
	o := &w.options
	size := o.Concurrency
	for _, one := range w.routes {
		size = max(size, o.Concurrency*one.size)
	}
	window := pacing.NewWindow(time.Now(), size, o.Window)
	session := stream.NewSession(opening, window.Size(), o.WindowBytes)
	metrics := newWorkerMetrics()
	r := &workerRun{
		metrics: metrics, log: o.Logger, base: context.WithoutCancel(ctx), middleware: o.Middleware,
		tracing: newWorkTracing(o.Propagator, o.TracerProvider, o.TraceAsChild),
		clientOptions: &ClientOptions{
			Logger: o.Logger, Propagator: o.Propagator, TracerProvider: o.TracerProvider,
			Codec: o.Codec,
		},
		codec:   o.Codec,
		session: newSharedSession(session, window, o.Logger, metrics), drain: w.drain, wakes: w.wakes,
		grace: pacing.Grace[handlerKey]{Length: o.CancelGrace},
	}
	if o.PauseAfterFailures > 0 {
		r.failures, r.failurePause = pacing.NewFailures(o.PauseAfterFailures, o.FailurePause), o.FailurePause
	}
	life, end := context.WithCancel(r.base)
	r.runners = newRunners(r, o.Concurrency)
	r.router = &router{run: r, routes: w.routes}
	r.flows = newFlowCalls(r, life)
	r.loop = &streamLoop{
		shows: w.shows, target: w.target, session: r.session, log: o.Logger,
		life: life, end: end, reconnects: &metrics.reconnects,
	}
	r.loop.take = func(received *stream.Received) {
		for _, one := range received.Unhandled[:min(len(received.Unhandled), unhandledMax)] {
			r.log.Warn("jobs wait, and no worker handles them", "queue", shortLine(one.GetQueue()), "name", shortLine(one.GetName()), "jobs", one.GetReady())
		}
		if received.IsOpened {
			w.connected()
		}
		r.router.take(received)
	}
	return r
}

func (r *workerRun) wake() {
	select {
	case r.wakes <- struct{}{}:
	default:
	}
}

// untilStopped starts all parts, waits until the drain is over, and stops them.
func (r *workerRun) untilStopped() error {
	r.runners.start()
	ended := make(chan error, 1)
	go func() {
		err := r.loop.run()
		if err != nil {
			r.drain.RequestStop()
		}
		r.wake()
		ended <- err
	}()
	r.supervise()
	r.router.close()
	r.loop.end()
	r.runners.stop()
	err := <-ended
	r.flows.close()
	return err
}

func (r *workerRun) stats() WorkerStats {
	held, _, isOpen := r.session.state()
	running, stuck := r.runners.counts()
	return WorkerStats{
		Done: r.session.done.Load(), Failed: r.session.failed.Load(),
		Released: r.session.released.Load(), Lost: r.session.lost.Load(),
		Running: running, Stuck: stuck, Waiting: max(0, held-running), Connected: isOpen,
		Paused: r.isPaused(),
	}
}
