package jobline

import (
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// router finds the handler of each job, gathers batches, and stops handlers whose lease is lost. The
// reader calls take, the supervisor flush.
type router struct {
	run    *workerRun
	routes map[routeKey]*route

	mu     sync.Mutex
	gather pacing.Gather[*route, *stream.Job]
	closed bool
	paused bool
}

type routeKey struct{ queue, name string }

func (r *router) find(queue, name string) *route {
	if found := r.routes[routeKey{queue, name}]; found != nil {
		return found
	}
	return r.routes[routeKey{queue, AnyName}]
}

// take routes what one frame brought.
func (r *router) take(received *stream.Received) {
	for _, lost := range received.Lost { // first: a job whose lease is lost need not start
		r.stop(lost)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.paused { // leased before the server knew that this worker stops, or pauses
		r.run.session.release((*stream.Session).ReleaseWaiting)
		return
	}
	r.run.runners.put(r.route(received.Jobs))
}

// route returns the work of jobs; the lock is held.
func (r *router) route(jobs []*stream.Job) []work {
	now := time.Now()
	all := make([]work, 0, len(jobs))
	var options *joblinev1.JobOptions
	var found *route
	for i, job := range jobs {
		if job.Options() != options || options == nil || found == nil { // the jobs of a run share theirs
			options, found = job.Options(), r.find(queueOfJob(job), job.Options().GetName())
		}
		switch {
		case found == nil:
			r.unhandled(job)
		case found.size == 0:
			all = append(all, work{found, jobs[i : i+1 : i+1]})
		default:
			if batch := r.gather.Add(now, found, job, found.size, found.wait); batch != nil {
				all = append(all, work{found, batch})
			} else {
				r.run.wake()
			}
		}
	}
	return all
}

func queueOfJob(job *stream.Job) string {
	if job.Run != nil {
		return job.Run.GetQueue()
	}
	return job.Message.GetQueue()
}

func (r *router) unhandled(job *stream.Job) {
	r.run.log.Warn("no handler for a job: given back", "job", job.ID, "queue", queueOfJob(job), "name", job.Options().GetName())
	r.run.session.settle(&joblinev1.ReleaseItem{
		Id: job.ID, Delivery: job.Delivery, Delay: span(unhandledDelay),
		Why: joblinev1.ReleaseReason_RELEASE_REASON_UNHANDLED,
	})
}

// flush starts the batches whose wait has ended; it returns the time until the next one, if any.
func (r *router) flush() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []work
	next, isNext := r.gather.Due(time.Now(), func(to *route, jobs []*stream.Job) {
		due = append(due, work{to, jobs})
	})
	r.run.runners.put(due)
	return next, isNext
}

// close starts nothing more and drops what has not started.
func (r *router) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.gather.Clear()
	r.run.runners.clear()
}

var stopReasons = map[joblinev1.RevokeReason]StopReason{
	joblinev1.RevokeReason_REVOKE_REASON_CANCELLED:     StopCancelled,
	joblinev1.RevokeReason_REVOKE_REASON_TIMEOUT:       StopTimeout,
	joblinev1.RevokeReason_REVOKE_REASON_QUEUE_DELETED: StopQueueDeleted,
}

func (r *router) stop(lost stream.LostLease) {
	reason, ok := stopReasons[lost.Reason]
	if !ok {
		reason = StopLeaseLost
	}
	if reason == StopTimeout {
		r.run.noteFailure()
	}
	if r.stopHandler(lost.Job, reason) || reason != StopCancelled {
		return
	}
	// It has not started, and is still held: nothing else would settle it.
	r.run.session.settleNow(&joblinev1.FailItem{
		Id: lost.Job.ID, Delivery: lost.Job.Delivery, Then: joblinev1.FailAction_FAIL_ACTION_CANCEL,
	})
	r.stopHandler(lost.Job, reason) // or it has started at this moment
}

func (r *router) stopHandler(job *stream.Job, reason StopReason) bool {
	leased := r.run.runners.find(job)
	if leased == nil {
		return false
	}
	leased.stop(reason)
	r.run.hasStopped.Store(true)
	r.run.wake()
	return true
}
