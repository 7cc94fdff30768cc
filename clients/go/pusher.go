package jobline

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pauses"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// What one call carries at most, and how many calls fly at a time over all lanes.
const (
	batchJobsMax  = 1_000
	batchBytesMax = 4 << 20
	flightsMax    = 32
	// How long a lane waits for the next push of callers that were just answered: a fiftieth of a call.
	gatherPause = 20 * time.Microsecond
)

// pusher sends single pushes, those made at the same time in one call. The first push of a lane is
// sent at once; pushes that arrive meanwhile gather, and are sent together when its reply is there.
// The buffer is bounded: when it is full, new pushes are refused.
type pusher struct {
	link     *link
	calls    *pushCalls
	jobsMax  int
	bytesMax int
	flights  chan struct{}

	mu       sync.Mutex
	lanes    map[laneKey]*lane
	jobs     int
	bytes    int
	others   int // calls of many pushes
	isClosed bool
	empty    chan struct{} // closed when the last push is answered after close
	life     context.Context
	end      context.CancelFunc
}

func newPusher(l *link, calls *pushCalls, jobsMax, bytesMax int) *pusher {
	life, end := context.WithCancel(context.Background())
	return &pusher{
		link: l, calls: calls, jobsMax: jobsMax, bytesMax: bytesMax,
		flights: make(chan struct{}, flightsMax), lanes: map[laneKey]*lane{},
		empty: make(chan struct{}), life: life, end: end,
	}
}

// push pushes one job. If its context ends before it left it is withdrawn; afterwards it may be
// stored.
func (p *pusher) push(ctx context.Context, out *Outgoing) (Pushed, error) {
	one, err := newPush(out)
	if err != nil {
		return Pushed{}, err
	}
	if err := ctx.Err(); err != nil {
		return Pushed{}, notSent(ctx)
	}
	if err := p.add(one); err != nil {
		return Pushed{}, err
	}
	select {
	case answer := <-one.answer:
		return answer.pushed, answer.err
	case <-ctx.Done():
	}
	if p.withdraw(one) {
		return Pushed{}, notSent(ctx)
	}
	select { // it may have been answered meanwhile
	case answer := <-one.answer:
		return answer.pushed, answer.err
	default:
	}
	return Pushed{}, newError(ErrOutcomeUnknown, "the outcome is not known: the caller stopped waiting: %v",
		context.Cause(ctx)).because(context.Cause(ctx))
}

func notSent(ctx context.Context) *Error {
	// Definite: nothing left this process.
	return newError(ErrRefused, "the push was not sent: %v", context.Cause(ctx)).because(context.Cause(ctx))
}

func (p *pusher) add(one *push) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return closedError()
	}
	if p.jobs >= p.jobsMax || (p.jobs > 0 && p.bytes+len(one.payload) > p.bytesMax) {
		return newError(ErrBufferFull, "%d pushes of %d bytes wait for the server already: "+
			"push more slowly, or give the client a larger buffer", p.jobs, p.bytes)
	}
	l := p.lanes[one.key]
	if l == nil {
		l = &lane{key: one.key}
		p.lanes[one.key] = l
	}
	one.since = time.Now()
	l.queue = append(l.queue, one)
	p.jobs++
	p.bytes += len(one.payload)
	if !l.isBusy {
		l.isBusy = true
		go p.run(l)
	}
	return nil
}

// withdraw removes a push; it returns false if it was sent already and may be stored.
func (p *pusher) withdraw(one *push) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[one.key]
	if one.isSent || l == nil {
		return false
	}
	bytes := len(one.payload)
	l.withdraw(one)
	p.free(1, bytes)
	return true
}

// free gives room back; the lock is held.
func (p *pusher) free(jobs, bytes int) {
	p.jobs -= jobs
	p.bytes -= bytes
	p.endIfEmpty()
}

func (p *pusher) endIfEmpty() {
	if p.isClosed && p.jobs == 0 && p.others == 0 {
		close(p.empty)
	}
}

// enter notes a call of many pushes, which close waits for; leave must follow unless it returns an error.
func (p *pusher) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return closedError()
	}
	p.others++
	return nil
}

func (p *pusher) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others--
	p.endIfEmpty()
}

func closedError() error { return newError(ErrClosed, "the client is closed") }

// run sends what a lane has until it has nothing left.
func (p *pusher) run(l *lane) {
	answered := 0
	for {
		p.flights <- struct{}{}
		p.gather(l, answered)
		p.mu.Lock()
		pushes := l.cut(batchJobsMax, batchBytesMax)
		if len(pushes) == 0 {
			l.isBusy = false
			delete(p.lanes, l.key)
		}
		p.mu.Unlock()
		if len(pushes) > 0 {
			p.send(pushes)
		}
		<-p.flights
		if len(pushes) == 0 {
			return
		}
		answered = len(pushes)
	}
}

// gather lets the callers of the last call run first, so that what they push next shares this one. Other cores run
// them, too: it yields until as many pushes are there as were answered, or none came for some microseconds. One that
// was alone has nobody to share with.
func (p *pusher) gather(l *lane, answered int) {
	came, at := 0, time.Now()
	for {
		runtime.Gosched()
		p.mu.Lock()
		waiting := len(l.queue) - l.gone
		p.mu.Unlock()
		if waiting > came {
			came, at = waiting, time.Now()
		}
		if waiting >= answered || answered == 1 || time.Since(at) > gatherPause {
			return
		}
	}
}

// send sends pushes in one call, repeats it while its outcome is unknown, and answers their callers.
// A call that was refused for something in it is split, until the push at fault is alone.
func (p *pusher) send(pushes []*push) {
	request, err := requestOf(pushes)
	if err != nil {
		p.fail(pushes, errorOf(p.life, err))
		return
	}
	call := p.calls.begin()
	call.identify(request)
	giveUp := pushes[0].since.Add(min(p.link.timeout, repeatMax))
	for tries := 1; ; tries++ {
		response, err := p.link.tryPush(p.life, request)
		if err == nil {
			p.link.answered()
			p.calls.end(call, true)
			p.answer(pushes, response)
			return
		}
		failed := errorOf(p.life, err)
		if len(pushes) > 1 && isOfSome(failed, pushes) {
			p.calls.end(call, true)
			for _, part := range parts(pushes) {
				p.send(part)
			}
			return
		}
		pause := max(pauses.Retry.After(tries), failed.RetryAfter)
		isOver := failed.Definite() || !failed.Retryable() || time.Now().Add(pause).After(giveUp)
		if isOver || !p.pause(failed, pause) {
			p.calls.end(call, isDefinite(failed, tries))
			requestID := ""
			if len(pushes) == 1 {
				requestID = call.text()
			}
			p.fail(pushes, asOne(unknownOutcome(failed, requestID, tries), len(pushes)))
			return
		}
	}
}

// pause waits before another try, while others may fly.
func (p *pusher) pause(why *Error, pause time.Duration) bool {
	p.link.troubled(why)
	<-p.flights
	isOn := sleep(p.life, pause)
	p.flights <- struct{}{}
	return isOn
}

func (p *pusher) answer(pushes []*push, response *joblinev1.PushResponse) {
	keysOf := func(i int) (string, string) { return pushes[i].own.jobKey, pushes[i].own.uniqueKey }
	outcomes, err := outcomesOf(response, pushes[0].key.queue, len(pushes), keysOf)
	if err != nil {
		p.fail(pushes, errorOf(p.life, err))
		return
	}
	p.release(pushes)
	for i, one := range pushes {
		answer := pushAnswer{pushed: outcomes[i]}
		if err := outcomes[i].Err; err != nil {
			answer = pushAnswer{err: err}
		}
		one.answer <- answer
	}
}

func (p *pusher) fail(pushes []*push, err *Error) {
	p.release(pushes)
	for _, one := range pushes {
		one.answer <- pushAnswer{err: err}
	}
}

func (p *pusher) release(pushes []*push) {
	bytes := 0
	for _, one := range pushes {
		bytes += len(one.payload)
	}
	p.mu.Lock()
	p.free(len(pushes), bytes)
	p.mu.Unlock()
}

// close refuses new pushes, and returns when the others have been answered.
func (p *pusher) close(patience time.Duration) {
	p.mu.Lock()
	if !p.isClosed {
		p.isClosed = true
		p.endIfEmpty()
	}
	p.mu.Unlock()
	select {
	case <-p.empty:
	case <-time.After(patience):
	}
	p.end()
}
