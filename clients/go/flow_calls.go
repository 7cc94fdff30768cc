package jobline

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Calls under way at a time; the other jobs wait for their turn, and keep their leases.
	flowCallsMax = 8
	// Time between two looks whether a job is still held, and between two tries of a call.
	flowPause    = time.Second
	flowPauseMax = 30 * time.Second
	// How long the children of a job wait for room; then its attempt has failed.
	flowFullMax = 5 * time.Minute
	// Looks after which reports are taken for lost, as the server refused some of them.
	flowLooksMax = 5
)

// flowCalls are calls of a worker beside its stream. A handler that returned WaitFor is over, and its
// place is given to another; its job is held until its children are stored, which ends the lease in
// the same transaction. A call may overtake the stream, so what the handler reported before is
// confirmed first: the checkpoint above all.
type flowCalls struct {
	run    *workerRun
	places chan struct{}
	life   context.Context

	mu      sync.Mutex
	waiting map[*stream.Job]struct{}
	made    *Client
}

func newFlowCalls(run *workerRun, life context.Context) *flowCalls {
	return &flowCalls{run: run, life: life, places: make(chan struct{}, flowCallsMax), waiting: map[*stream.Job]struct{}{}}
}

// client returns the worker's own client, made at its first use.
func (f *flowCalls) client() (*Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		made, err := newClient(f.run.loop.target, f.run.loop.shows, f.run.clientOptions)
		if err != nil {
			return nil, err
		}
		f.made = made
	}
	return f.made, nil
}

func (f *flowCalls) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made != nil {
		f.made.pusher.close(0) // only a handler that ignored its end may still wait for a push
		_ = f.made.Close()
	}
}

func (f *flowCalls) pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting)
}

// push pushes the children of a job soon.
func (f *flowCalls) push(job *LeasedJob, children []FlowJob) {
	if len(children) == 0 {
		f.run.fail(job, refuse("children", "a job needs at least one child to wait for"), nil)
		return
	}
	f.mu.Lock()
	f.waiting[job.job] = struct{}{}
	f.mu.Unlock()
	go func() {
		f.places <- struct{}{}
		defer func() { <-f.places }()
		err := f.pushNow(job, children)
		if err != nil && job.job.IsHeld() {
			f.run.fail(job, err, nil)
		}
		f.mu.Lock()
		delete(f.waiting, job.job)
		f.mu.Unlock()
		f.run.wake()
	}()
}

// pushNow pushes children until the server has taken them or refused them for good, or the lease is
// lost. While it has no room the job is held and uses up no attempt. The same request id makes sure
// that they are pushed once.
func (f *flowCalls) pushNow(job *LeasedJob, children []FlowJob) (err error) {
	defer recovered(&err) // of a key ring, for one
	client, err := f.client()
	if err != nil {
		return err
	}
	requestID := rand.Text()
	parent := &joblinev1.FlowParent{Id: job.ID, Delivery: job.Delivery}
	giveUp := time.Now().Add(flowFullMax)
	for f.isReported(job.job) {
		_, err := client.pushFlow(f.life, children, parent, requestID)
		if err == nil {
			f.run.session.handOver(job.job, false)
			return nil
		}
		failed := errorOf(f.life, err)
		if failed.Is(ErrLeaseLost) {
			f.run.session.handOver(job.job, true)
			return nil
		}
		mayPass := !failed.Definite() || failed.Is(ErrUnavailable) ||
			(failed.Is(ErrResourceExhausted) && failed.Retryable() && time.Now().Before(giveUp))
		if !mayPass {
			return err
		}
		f.run.log.Warn("the children of a job are not pushed yet; trying again", "job", job.ID, "error", err)
		sleep(f.life, min(max(failed.RetryAfter, flowPause), flowPauseMax))
	}
	return nil
}

// isReported waits until the server has handled what the handler reported; it returns false if the job
// is not held any more.
func (f *flowCalls) isReported(job *stream.Job) bool {
	passed := make(chan struct{})
	pass := sync.OnceFunc(func() { close(passed) })
	timer := time.NewTicker(flowPause)
	defer timer.Stop()
	for looks := 0; job.IsHeld() && f.life.Err() == nil; looks++ {
		if looks%flowLooksMax == 0 {
			f.run.session.fence(pass)
		}
		select {
		case <-passed:
			return job.IsHeld()
		case <-timer.C:
		case <-f.life.Done():
		}
	}
	return false
}
