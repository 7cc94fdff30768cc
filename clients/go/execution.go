package jobline

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/stream"
)

// runJob runs a handler for one job, and settles it.
func (r *workerRun) runJob(s *slot, route *route, job *stream.Job) {
	leased := newLeasedJob(r, job)
	jobs := []*LeasedJob{leased}
	if err := leased.open(); err != nil {
		r.settleUnread(leased, err)
		return
	}
	var result encoded
	r.execute(s, jobs, func(ctx context.Context, _ []*LeasedJob) (err error) {
		result, err = route.one(ctx, leased)
		return err
	}, func(ctx context.Context, err error) {
		r.settle(ctx, leased, result, err)
	})
}

// runBatch runs a handler for the jobs of a batch that are still held, and settles each.
func (r *workerRun) runBatch(s *slot, w work) {
	var jobs []*LeasedJob
	for _, job := range w.jobs {
		if !job.IsHeld() {
			continue
		}
		leased := newLeasedJob(r, job)
		if err := leased.open(); err != nil {
			r.settleUnread(leased, err)
			continue
		}
		jobs = append(jobs, leased)
	}
	if len(jobs) == 0 {
		return
	}
	given := &answers{}
	r.execute(s, jobs, func(ctx context.Context, jobs []*LeasedJob) error {
		return w.route.many(ctx, jobs, given)
	}, func(ctx context.Context, err error) {
		for _, job := range jobs {
			answer, ok := given.of(job)
			switch {
			case ok:
				r.settle(ctx, job, answer.result, answer.err)
			case err != nil:
				r.settle(ctx, job, encoded{}, err)
			default:
				r.settle(ctx, job, encoded{}, errForgotten)
			}
		}
	})
}

// execute calls a handler in a slot, within the middleware, and then settles its jobs.
func (r *workerRun) execute(s *slot, jobs []*LeasedJob, handler Handler, settle func(context.Context, error)) {
	ctx, cancel := r.contextOf(jobs)
	defer cancel(nil)
	r.runners.hold(s, jobs)
	defer r.runners.hold(s, nil)
	if !r.begin(jobs) {
		return
	}
	if r.hasHealth {
		defer r.timeHandler(jobs[0].Name, time.Now())
	}
	hasReturned := false
	defer func() {
		if !hasReturned { // runtime.Goexit
			settle(ctx, &panicError{value: "the handler ended its goroutine", stack: string(debug.Stack())})
		}
	}()
	err := r.call(ctx, jobs, handler)
	hasReturned = true
	settle(ctx, err)
}

func (r *workerRun) timeHandler(name string, began time.Time) {
	r.metrics.took(name, time.Since(began))
}

// begin reports whether any of the jobs is held, just before their handler begins.
func (r *workerRun) begin(jobs []*LeasedJob) bool {
	isAny := false
	for _, job := range jobs {
		if job.job.Begin() {
			isAny = true
		} else {
			job.stop(StopLeaseLost)
		}
	}
	return isAny
}

func (r *workerRun) call(ctx context.Context, jobs []*LeasedJob, handler Handler) (err error) {
	defer recovered(&err)
	if len(r.middleware) == 0 {
		return handler(ctx, jobs)
	}
	next := Handler(func(ctx context.Context, jobs []*LeasedJob) (err error) {
		defer recovered(&err) // so that middleware sees a panic as the error that it is
		return handler(ctx, jobs)
	})
	for i := len(r.middleware) - 1; i >= 0; i-- {
		next = r.middleware[i](next)
	}
	return next(ctx, jobs)
}

func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &panicError{value: value, stack: string(debug.Stack())}
	}
}

var errForgotten = fmt.Errorf("the batch handler gave no answer for this job")

// answers are those of a batch handler, by job. It may give them from several goroutines.
type answers struct {
	mu    sync.Mutex
	given map[*LeasedJob]answer
}

type answer struct {
	result encoded
	err    error
}

func (a *answers) set(job *LeasedJob, result encoded, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given == nil {
		a.given = map[*LeasedJob]answer{}
	}
	a.given[job] = answer{result, err}
}

func (a *answers) of(job *LeasedJob) (answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.given[job]
	return found, ok
}
