package jobline

import (
	"sync"

	"github.com/jobline/jobline/clients/go/internal/stream"
)

// work is one call of a handler: a job, or the jobs of a batch.
type work struct {
	route *route
	jobs  []*stream.Job
}

// slot is a place for one handler at a time: a goroutine. A handler cannot be killed, so a successor
// takes the slot of one that ignores its end.
type slot struct {
	goroutine string // "goroutine 7 ", as a stack dump begins
	jobs      []*LeasedJob
	replaced  bool
}

// runners run handlers, up to a number at a time, from one backlog.
type runners struct {
	run  *workerRun
	size int

	mu      sync.Mutex
	ready   sync.Cond
	backlog []work
	head    int // of the backlog
	closed  bool
	slots   map[*slot]struct{}
	stuck   int
}

func newRunners(run *workerRun, size int) *runners {
	r := &runners{run: run, size: size, slots: map[*slot]struct{}{}}
	r.ready.L = &r.mu
	return r
}

func (r *runners) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.size {
		r.startOne()
	}
}

// startOne starts a slot; the lock is held.
func (r *runners) startOne() {
	s := &slot{}
	r.slots[s] = struct{}{}
	go r.serve(s)
}

// stop ends the slots, each after its current handler.
func (r *runners) stop() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.ready.Broadcast()
}

func (r *runners) put(more []work) {
	if len(more) == 0 {
		return
	}
	r.mu.Lock()
	r.backlog = append(r.backlog, more...)
	r.mu.Unlock()
	if len(more) == 1 {
		r.ready.Signal()
		return
	}
	r.ready.Broadcast()
}

// clear drops what has not started; the session knows which leases are held.
func (r *runners) clear() {
	r.mu.Lock()
	r.backlog, r.head = nil, 0
	r.mu.Unlock()
}

// next returns the next work; false once there is none for this slot any more.
func (r *runners) next(s *slot) (work, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head == len(r.backlog) {
		if r.closed || s.replaced {
			return work{}, false
		}
		r.ready.Wait()
	}
	if r.closed || s.replaced {
		return work{}, false
	}
	w := r.backlog[r.head]
	r.backlog[r.head] = work{}
	r.head++
	if r.head == len(r.backlog) {
		r.backlog, r.head = r.backlog[:0], 0
	}
	return w, true
}

func (r *runners) serve(s *slot) {
	s.goroutine = thisGoroutine()
	hasEnded := false
	defer func() {
		if hasEnded {
			return
		}
		// A handler ended its goroutine, as testing's FailNow does.
		r.mu.Lock()
		if !s.replaced {
			r.startOne()
		}
		r.mu.Unlock()
		r.leave(s)
	}()
	for {
		w, ok := r.next(s)
		if !ok {
			break
		}
		if w.route.size > 0 {
			r.run.runBatch(s, w)
		} else {
			r.run.runJob(s, w.route, w.jobs[0])
		}
	}
	hasEnded = true
	r.leave(s)
}

// hold says which jobs run in a slot; none when its handler has ended.
func (r *runners) hold(s *slot, jobs []*LeasedJob) {
	r.mu.Lock()
	s.jobs = jobs
	r.mu.Unlock()
}

func (r *runners) leave(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.jobs = nil
	delete(r.slots, s)
	if s.replaced {
		r.stuck--
		r.run.log.Warn("a handler that ignored its end has ended at last; what it said is dropped")
	}
}

// running returns the jobs of handlers that run, but for those whose slots were replaced.
func (r *runners) running() []*LeasedJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	var jobs []*LeasedJob
	for s := range r.slots {
		if !s.replaced {
			jobs = append(jobs, s.jobs...)
		}
	}
	return jobs
}

// find returns the handler's view of a leased job, nil if its handler does not run.
func (r *runners) find(job *stream.Job) *LeasedJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.slots {
		for _, one := range s.jobs {
			if one.job == job {
				return one
			}
		}
	}
	return nil
}

func (r *runners) counts() (running, stuck int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.slots {
		if !s.replaced {
			running += len(s.jobs)
		}
	}
	return running, r.stuck
}

// handlerKey names a call of a handler: a slot has another one for other jobs.
type handlerKey struct {
	slot  *slot
	first *LeasedJob
}

// stopping returns the handlers all of whose jobs were asked to stop.
func (r *runners) stopping() []handlerKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []handlerKey
	for s := range r.slots {
		if s.replaced || len(s.jobs) == 0 {
			continue
		}
		areAll := true
		for _, job := range s.jobs {
			areAll = areAll && job.stopReason.Load() != nil
		}
		if areAll {
			keys = append(keys, handlerKey{s, s.jobs[0]})
		}
	}
	return keys
}

// replace gives the place of a stuck handler to another; it returns its jobs and its stack, or none
// if it has ended meanwhile. Each stuck one keeps what it holds, so there is an end to it.
func (r *runners) replace(key handlerKey, stacks *stackDump) (jobs []*LeasedJob, stack string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key.slot.replaced || len(key.slot.jobs) == 0 || key.slot.jobs[0] != key.first {
		return nil, ""
	}
	if r.stuck >= r.size {
		r.run.log.Error("as many handlers as may run hang on after their end: no more of them are replaced; restart this process", "handlers", r.stuck)
		return nil, ""
	}
	key.slot.replaced = true
	r.stuck++
	r.run.metrics.abandoned.Add(1)
	r.startOne()
	return key.slot.jobs, stacks.of(key.slot.goroutine)
}

// stacks returns the stacks of handlers that run, and how many these are.
func (r *runners) stacks() (count int, stacks string) {
	var dump stackDump
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.slots {
		if len(s.jobs) > 0 {
			count++
			if len(stacks) < stacksBytesMax {
				stacks += dump.of(s.goroutine) + "\n"
			}
		}
	}
	return count, stacks
}
