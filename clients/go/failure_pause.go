package jobline

import (
	"time"

	"github.com/jobline/jobline/clients/go/internal/stream"
)

// noteSuccess notes a job that is done.
func (r *workerRun) noteSuccess() {
	if r.failures != nil {
		r.failures.Succeeded()
	}
}

// noteFailure notes an attempt that has failed, and begins a pause if it was one too many.
func (r *workerRun) noteFailure() {
	if r.failures == nil {
		return
	}
	if row, begins := r.failures.Failed(time.Now()); begins {
		r.log.Error("attempts in a row have failed: no jobs are taken for a while",
			"attempts", row, "pause", r.failurePause)
		r.router.applyPause()
		r.wake()
	}
}

func (r *workerRun) isPaused() bool { return r.failures != nil && r.failures.IsPaused() }

// checkPause ends a pause that is over; it returns the time until its end, if there is one.
func (r *workerRun) checkPause() (time.Duration, bool) {
	if r.failures == nil {
		return 0, false
	}
	hasEnded, next, isNext := r.failures.Resume(time.Now())
	if hasEnded {
		r.log.Info("the pause after failures is over: jobs are taken again")
		r.router.applyPause()
	}
	return next, isNext
}

// applyPause has the worker take jobs, or none: then what has not begun is given back.
func (r *router) applyPause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = r.run.isPaused() // another pause may have begun at the end of this one
	r.run.session.setPaused(r.paused)
	if r.paused {
		r.gather.Clear()
		r.run.runners.clear()
		r.run.session.release((*stream.Session).ReleaseWaiting)
	}
}
