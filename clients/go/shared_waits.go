package jobline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pauses"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Jobs of one call.
	waitIDsMax = 10_000
	// Waits for more jobs than this have a call of their own, so that a slow reader holds up nobody else.
	sharedIDsMax = 100
	// Calls up to which a wait has its own at once, as most are over soon; from then on they gather.
	waitCallsFew, waitCallsMany = 64, 128
	gatherWaits, gatherMore     = 5 * time.Millisecond, 50 * time.Millisecond
	// Calls that may stay; of more, those that are not half full are put together, once they are this old.
	waitCallsKept  = 8
	mergeWaitCalls = time.Second
	// How long a call stays open beside the one that takes its place, so that the server knows the jobs all the time:
	// one that ends and is not kept has an answer in that moment alone.
	waitOverlap = time.Second
)

// sharedWaits are the small waits of one client. Those that last share calls: each call takes room of the
// connection, which pushes need too.
type sharedWaits struct {
	client *Client

	mu          sync.Mutex
	jobs        map[uint64]*waitedJob
	fresh       []uint64 // in no call yet
	calls       map[*waitCall]struct{}
	retiring    int
	isGathering bool
	isMerging   bool
}

// waitedJob is a job, and those who wait for it, each of whom knows its place among them.
type waitedJob struct {
	waits []*sharedWait
	call  *waitCall // nil while it is fresh
}

// waitCall is an open call, over its reconnects.
type waitCall struct {
	ids       []uint64
	live      int // of them, those that somebody waits for here
	since     time.Time
	ctx       context.Context
	end       context.CancelFunc
	isRetired bool
}

// sharedWait is a wait of the program.
type sharedWait struct {
	left  map[uint64]int // with its place among those who wait for that job
	ended []*joblinev1.WaitResponse
	err   error
	news  chan struct{}
}

// join begins a wait; leave must follow.
func (s *sharedWaits) join(ids []uint64) *sharedWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &sharedWait{left: map[uint64]int{}, news: make(chan struct{}, 1)}
	for _, id := range ids {
		if _, isTwice := w.left[id]; isTwice {
			continue
		}
		job := s.jobs[id]
		if job == nil {
			job = &waitedJob{}
			s.jobs[id] = job
			s.fresh = append(s.fresh, id)
		}
		w.left[id] = len(job.waits)
		job.waits = append(job.waits, w)
	}
	s.gather()
	return w
}

// leave ends a wait, and returns the jobs that had not ended. It may be called twice.
func (s *sharedWaits) leave(w *sharedWait) map[uint64]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := make(map[uint64]struct{}, len(w.left))
	for id, place := range w.left {
		left[id] = struct{}{}
		job := s.jobs[id]
		last := len(job.waits) - 1
		job.waits[last].left[id] = place
		job.waits[place], job.waits[last] = job.waits[last], nil
		if job.waits = job.waits[:last]; last > 0 {
			continue
		}
		delete(s.jobs, id)
		if job.call == nil {
			s.fresh = slices.DeleteFunc(s.fresh, func(one uint64) bool { return one == id })
		} else if job.call.live--; job.call.live == 0 {
			job.call.end()
		}
	}
	w.left = nil
	return left
}

// news returns what a wait has got since the last call, and whether more may come.
func (s *sharedWaits) news(w *sharedWait) (ended []*joblinev1.WaitResponse, err error, isOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, w.ended = w.ended, nil
	return ended, w.err, len(w.left) == 0
}

// liveOf returns the jobs of a call that somebody waits for.
func (s *sharedWaits) liveOf(call *waitCall) []uint64 {
	live := make([]uint64, 0, call.live)
	for _, id := range call.ids {
		if job := s.jobs[id]; job != nil && job.call == call {
			live = append(live, id)
		}
	}
	return live
}

// run makes the call until nobody waits for its jobs any more.
func (s *sharedWaits) run(call *waitCall) {
	defer call.end()
	defer s.over(call)
	for tries, renewals := 1, 0; ; tries++ {
		began := time.Now()
		s.mu.Lock()
		call.ids = s.liveOf(call)
		ids := call.ids
		s.mu.Unlock()
		if len(ids) == 0 || call.ctx.Err() != nil {
			return
		}
		hadOne, err := s.once(call, ids)
		failed := (*Error)(nil)
		if err != nil {
			failed = errorOf(call.ctx, err)
		}
		if hadOne || time.Since(began) > pauses.Retry.Longest {
			tries, renewals = 0, 0
		}
		if failed != nil && call.ctx.Err() == nil && !failed.Retryable() {
			if renewals++; !s.client.link.shows.mayRenew(failed) || renewals >= renewalsMax {
				s.refuse(call, failed)
				return
			}
		}
		// Also after a call that ended well without all answers, or it would be repeated at once for ever.
		pause := pauses.Retry.After(max(tries, 1))
		if failed != nil {
			pause = max(pause, failed.RetryAfter)
		}
		if s.hasLive(call) {
			sleep(call.ctx, pause)
		}
	}
}

// once makes one call.
func (s *sharedWaits) once(call *waitCall, ids []uint64) (hadOne bool, err error) {
	asked := setOf(ids)
	check := func(response *joblinev1.WaitResponse) error { return checkAnswer(response, asked, false) }
	return s.client.waitOnce(call.ctx, ids, waitMax, false, check, func(response *joblinev1.WaitResponse) bool {
		s.answer(response)
		return true
	})
}

func (s *sharedWaits) hasLive(call *waitCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return call.live > 0 && !call.isRetired
}

func (s *sharedWaits) over(call *waitCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.isRetired {
		s.retiring--
	}
	delete(s.calls, call)
}

// answer hands the end of a job to those who wait for it. It may come twice, as calls overlap.
func (s *sharedWaits) answer(response *joblinev1.WaitResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := response.GetId()
	job := s.jobs[id]
	if job == nil {
		return
	}
	delete(s.jobs, id)
	if job.call == nil { // an older call, with which somebody has waited for it before, was faster than the next
		s.fresh = slices.DeleteFunc(s.fresh, func(one uint64) bool { return one == id })
	} else {
		job.call.live--
	}
	for _, w := range job.waits {
		delete(w.left, id)
		w.ended = append(w.ended, response)
		w.tell()
	}
}

// refuse ends the waits for the jobs of a call. If the refusal may be about some of the jobs, the halves are asked
// for again, until only those are left.
func (s *sharedWaits) refuse(call *waitCall, why *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.liveOf(call)
	if call.live = 0; len(ids) > 1 && (why.Is(ErrInvalidArgument) || why.Is(ErrNotFound) || why.Is(ErrDataLoss)) {
		half := len(ids) / 2
		s.open(ids[:half:half])
		s.open(ids[half:])
		return
	}
	for _, id := range ids {
		job := s.jobs[id]
		delete(s.jobs, id)
		for _, w := range job.waits {
			delete(w.left, id)
			w.err = why
			w.tell()
		}
	}
}

func (w *sharedWait) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}
