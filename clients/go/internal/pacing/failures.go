package pacing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Failures counts attempts that fail in a row. What jobs need may be down: their worker would fail one after the
// other, and use up their attempts. After a pause the next failure is enough for another one, until a job succeeds.
// It may be used by several goroutines.
type Failures struct {
	limit int64
	pause time.Duration

	row      atomic.Int64
	isPaused atomic.Bool

	mu       sync.Mutex
	endsAt   time.Time
	isClosed bool
}

// NewFailures returns a counter that pauses for a time after so many failures in a row, 1 or more.
func NewFailures(limit int, pause time.Duration) *Failures {
	return &Failures{limit: int64(limit), pause: pause}
}

// IsPaused reports whether no jobs are taken.
func (f *Failures) IsPaused() bool { return f.isPaused.Load() }

// Succeeded notes a job that is done. A pause goes on.
func (f *Failures) Succeeded() {
	if f.row.Load() == 0 { // mostly there is nothing to forget
		return
	}
	f.mu.Lock()
	f.row.Store(0)
	f.mu.Unlock()
}

// Failed notes an attempt that has failed; it returns how many are in a row, and whether a pause begins.
func (f *Failures) Failed(now time.Time) (row int64, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row = f.row.Add(1)
	if row < f.limit || f.isPaused.Load() || f.isClosed {
		return row, false
	}
	f.endsAt = now.Add(f.pause)
	f.isPaused.Store(true)
	return row, true
}

// Resume ends a pause that is over, and reports whether it has. Else next is the time until its end, if there is one.
func (f *Failures) Resume(now time.Time) (hasEnded bool, next time.Duration, isNext bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isPaused.Load() {
		return false, 0, false
	}
	if left := f.endsAt.Sub(now); left > 0 {
		return false, left, true
	}
	f.isPaused.Store(false)
	f.row.Store(min(f.row.Load(), f.limit-1))
	return true, 0, false
}

// Close begins no pause any more: the worker stops.
func (f *Failures) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isClosed = true
	f.isPaused.Store(false)
}
