package jobline

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pacing"
	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Time between measurements of a window that moves.
const measureEvery = 100 * time.Millisecond

// sharedSession is the session of a worker, for its runners, reader, writer and supervisor. Runners
// append outcomes to a buffer and wake the writer, which moves all of them into the session at once:
// that is how settles are batched. Everything else goes through one lock that is held for moments.
type sharedSession struct {
	log  *slog.Logger
	wake chan struct{} // the writer's

	mu       sync.Mutex
	session  *stream.Session
	window   *pacing.Window
	isPaused bool
	finished int64

	outcomes sync.Mutex
	acks     []ackOf
	items    []stream.Item

	done, failed, released, lost atomic.Int64
	metrics                      *workerMetrics
	downSince                    atomic.Pointer[time.Time] // nil while there is a stream
}

type ackOf struct {
	job    *stream.Job
	result []byte
}

func newSharedSession(session *stream.Session, window *pacing.Window, log *slog.Logger, metrics *workerMetrics) *sharedSession {
	s := &sharedSession{
		session: session, window: window, log: log, metrics: metrics,
		wake: make(chan struct{}, 1),
	}
	now := time.Now()
	s.downSince.Store(&now)
	return s
}

func (s *sharedSession) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sharedSession) ack(job *stream.Job, result []byte) {
	s.outcomes.Lock()
	s.acks = append(s.acks, ackOf{job, result})
	s.outcomes.Unlock()
	s.wakeWriter()
}

func (s *sharedSession) settle(item stream.Item) {
	s.outcomes.Lock()
	s.items = append(s.items, item)
	s.outcomes.Unlock()
	s.wakeWriter()
}

// settleNow settles a job at once; what its handler returns later is dropped.
func (s *sharedSession) settleNow(item stream.Item) {
	s.mu.Lock()
	s.takeItem(item)
	s.mu.Unlock()
	s.wakeWriter()
}

// locked calls the session, and wakes the writer.
func (s *sharedSession) locked(do func(*stream.Session)) {
	s.mu.Lock()
	do(s.session)
	s.mu.Unlock()
	s.wakeWriter()
}

func (s *sharedSession) report(job *stream.Job, report stream.Report) {
	s.locked(func(session *stream.Session) { session.Report(job, report) })
}

func (s *sharedSession) piece(job *stream.Job, data []byte) {
	s.locked(func(session *stream.Session) { session.Piece(job, data) })
}

func (s *sharedSession) writeLine(job *stream.Job, line stream.Line) {
	s.locked(func(session *stream.Session) { session.Log(job, line) })
}

func (s *sharedSession) finishPhase(job *stream.Job, name string, result []byte) {
	s.locked(func(session *stream.Session) { session.FinishPhase(job, name, result) })
}

func (s *sharedSession) fence(passed func()) {
	s.locked(func(session *stream.Session) { session.Fence(passed) })
}

// handOver drops a lease that was ended by another call, or found to be lost by it.
func (s *sharedSession) handOver(job *stream.Job, isLost bool) {
	s.locked(func(session *stream.Session) {
		if !session.Leave(job) {
			return
		}
		s.finished++
		if isLost {
			s.lost.Add(1)
		} else {
			s.released.Add(1)
			s.metrics.settled[countReleased].Add(1)
		}
	})
}

func (s *sharedSession) connect() {
	s.mu.Lock()
	s.session.Connect(time.Now())
	s.mu.Unlock()
}

func (s *sharedSession) disconnect() {
	s.mu.Lock()
	s.session.Disconnect()
	s.mu.Unlock()
	now := time.Now()
	s.downSince.CompareAndSwap(nil, &now)
}

// downFor returns how long there has been no stream; 0 while there is one.
func (s *sharedSession) downFor(now time.Time) time.Duration {
	since := s.downSince.Load()
	if since == nil {
		return 0
	}
	return now.Sub(*since) // by the monotonic clock, which both have
}

// handle handles a frame of the server and returns what it brought.
func (s *sharedSession) handle(frame *joblinev1.StreamResponse) *stream.Received {
	received := s.handleLocked(time.Now(), frame)
	if received.IsOpened {
		s.downSince.Store(nil)
	}
	for _, report := range received.Reports {
		s.count(report)
	}
	// Confirms make room for the next settles, and `opened` for the first ones.
	s.wakeWriter()
	return received
}

func (s *sharedSession) handleLocked(now time.Time, frame *joblinev1.StreamResponse) *stream.Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOutcomes() // what was settled before this frame arrived must not count as held
	received := s.session.Handle(now, frame)
	s.measure(now)
	return received
}

// frames returns the frames that are due, the time until the next, and whether to half-close.
func (s *sharedSession) frames() (frames []*joblinev1.StreamRequest, pause time.Duration, isLast bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOutcomes()
	s.measure(now)
	frames = s.session.Frames(now)
	return frames, s.session.NextDeadline(now).Sub(now), s.session.MayHalfClose()
}

// takeOutcomes moves the outcomes of runners into the session. A job's reports are there already.
func (s *sharedSession) takeOutcomes() {
	s.outcomes.Lock()
	acks, items := s.acks, s.items
	s.acks, s.items = nil, nil
	s.outcomes.Unlock()
	s.finished += int64(len(acks))
	done := int64(0)
	for i := range acks {
		if s.session.Ack(acks[i].job, acks[i].result) {
			done++
		}
	}
	s.done.Add(done)
	s.metrics.settled[countCompleted].Add(done)
	s.lost.Add(int64(len(acks)) - done)
	for _, item := range items {
		s.takeItem(item)
	}
}

func (s *sharedSession) takeItem(item stream.Item) {
	s.finished++
	isHeld := s.session.Settle(item)
	_, isFail := item.(*joblinev1.FailItem)
	switch {
	case !isHeld:
		s.lost.Add(1)
		return
	case isFail:
		s.failed.Add(1)
	default:
		s.released.Add(1)
	}
	s.metrics.settle(item)
}

// count corrects the counts for a settle that came too late, and logs jobs that died.
func (s *sharedSession) count(report stream.SettleReport) {
	if report.IsDead {
		s.log.Error("job is dead", "job", report.ID, "error", report.Error)
	}
	switch report.Outcome {
	case joblinev1.SettleOutcome_SETTLE_OUTCOME_LEASE_LOST, joblinev1.SettleOutcome_SETTLE_OUTCOME_NOT_FOUND:
		s.lost.Add(1)
		if report.IsAck {
			s.done.Add(-1)
		}
	}
}

func (s *sharedSession) measure(now time.Time) {
	if s.window.Measure(now, s.finished) && !s.isPaused {
		s.session.SetWindow(s.window.Size())
	}
}

// setPaused has the server send no jobs for a while, or jobs again.
func (s *sharedSession) setPaused(isPaused bool) {
	s.locked(func(session *stream.Session) {
		s.isPaused = isPaused
		if isPaused {
			session.SetWindow(0)
		} else {
			session.SetWindow(s.window.Size())
		}
	})
}

// checkSilence reports whether the server has been silent for too long, and when to check again.
func (s *sharedSession) checkSilence() (isSilent bool, pause time.Duration) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(now)
	isSilent = s.session.IsSilent(now)
	pause = s.session.NextSilenceCheck(now).Sub(now)
	if !s.window.IsAtRest() {
		pause = min(pause, measureEvery)
	}
	return isSilent, pause
}

// release gives jobs back, and returns how many: those that have not begun, or all.
func (s *sharedSession) release(of func(*stream.Session) int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOutcomes()
	count := of(s.session)
	s.released.Add(int64(count))
	s.metrics.settled[countReleased].Add(int64(count))
	s.wakeWriter()
	return count
}

// state returns how many leases are held, and how many jobs were settled since the start.
func (s *sharedSession) state() (held int, finished int64, isOpen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.session.Held()), s.finished, s.session.IsOpen()
}

func (s *sharedSession) isConfirmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOutcomes()
	return s.session.IsConfirmed()
}

// isOver reports whether the session drains and everything is confirmed.
func (s *sharedSession) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeOutcomes()
	return s.session.IsDraining() && s.session.IsConfirmed()
}
