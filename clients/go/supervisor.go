package jobline

import (
	"time"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Time between checks while the worker stops: handlers and confirms do not wake the supervisor.
	drainCheck = 10 * time.Millisecond
	// Time between checks otherwise, at most.
	checkMax = time.Second
)

// supervise detects a silent server, starts batches whose wait has ended, adapts the window to the
// work, replaces handlers that run on after their grace period, and takes a stopping worker through
// the stages of its drain. It runs no handler, so none can block it.
func (r *workerRun) supervise() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.drain.Stage() != pacing.Stopped {
		timer.Reset(r.check())
		select {
		case <-timer.C:
		case <-r.wakes:
		}
	}
}

// check does what is due; it returns the time until the next check.
func (r *workerRun) check() time.Duration {
	isSilent, pause := r.session.checkSilence()
	if isSilent {
		r.log.Warn("the server has fallen silent: opening another stream", "server", r.loop.target)
		r.loop.endStream()
		pause = checkMax
	}
	pause = min(pause, checkMax)
	// Idle before the end of a pause: the worker is idle from then on.
	for _, due := range []func() (time.Duration, bool){r.router.flush, r.replaceStuck, r.checkIdle, r.checkPause} {
		if next, isNext := due(); isNext {
			pause = min(pause, next)
		}
	}
	r.step()
	if r.drain.Stage() != pacing.Working {
		pause = min(pause, drainCheck)
	}
	return max(pause, 0)
}

func (r *workerRun) checkIdle() (time.Duration, bool) {
	held, finished, isOpen := r.session.state()
	running, _ := r.runners.counts()
	isBusy := !isOpen || held > 0 || running > 0 || r.flows.pending() > 0 || r.isPaused()
	return r.drain.CheckIdle(time.Now(), isBusy, finished)
}

// replaceStuck replaces handlers whose grace period has ended.
func (r *workerRun) replaceStuck() (time.Duration, bool) {
	if !r.hasStopped.Load() || r.drain.Stage() >= pacing.Cancelling {
		return 0, false
	}
	r.hasStopped.Store(false) // a handler that is stopped from now on sets it again
	stopping := r.runners.stopping()
	if len(stopping) > 0 {
		r.hasStopped.Store(true)
	}
	late, next, isNext := r.grace.Expired(time.Now(), stopping)
	var stacks stackDump
	for _, key := range late {
		jobs, stack := r.runners.replace(key, &stacks)
		if jobs == nil {
			continue
		}
		r.log.Error("a handler ignores its end: its place is given to another, and what it says is dropped",
			"job", jobs[0].ID, "queue", jobs[0].Queue, "name", jobs[0].Name, "jobs", len(jobs),
			"reason", jobs[0].Stopped(), "stack", stack)
		for _, job := range jobs {
			if job.job.IsHeld() { // cancelled: nothing else would settle it
				r.session.settleNow(failItem(job, nil, joblinev1.FailAction_FAIL_ACTION_CANCEL))
			}
		}
	}
	return next, isNext
}

// step takes a stopping worker to its next stages.
func (r *workerRun) step() {
	for {
		running, _ := r.runners.counts()
		running += r.flows.pending()
		isConfirmed := r.session.isConfirmed() && !r.loop.isCalling()
		stage, isNew := r.drain.Step(time.Now(), running == 0, isConfirmed)
		if !isNew {
			return
		}
		switch stage {
		case pacing.Finishing:
			r.log.Info("stopping", "handlers", running, "up_to", time.Until(r.drain.EndsAt()).Round(time.Millisecond))
			r.finishRunning()
		case pacing.Cancelling:
			for _, job := range r.runners.running() {
				job.stop(StopWorker)
			}
		case pacing.Releasing:
			r.releaseRest()
		case pacing.Stopped:
			r.log.Info("stopped")
		}
	}
}

// finishRunning starts nothing more, and releases jobs that have not started.
func (r *workerRun) finishRunning() {
	if r.failures != nil {
		r.failures.Close()
	}
	r.session.locked((*stream.Session).Drain)
	r.router.close()
	r.session.release((*stream.Session).ReleaseWaiting)
}

// releaseRest releases what is still held, and logs the handlers that did not stop.
func (r *workerRun) releaseRest() {
	released := r.session.release((*stream.Session).ReleaseAll)
	if count, stacks := r.runners.stacks(); count > 0 {
		_, isCounted := r.runners.counts()
		r.metrics.abandoned.Add(int64(count - isCounted))
		r.log.Error("handlers did not stop in time", "handlers", count, "released", released, "stacks", stacks)
	}
}
