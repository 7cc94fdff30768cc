package pacing

import "time"

const (
	// Work to have at hand: several round trips, far below what a person would notice.
	lookahead = 100 * time.Millisecond
	// Time between measurements.
	measureInterval = 50 * time.Millisecond
	// A measurement below the last estimate brings it down by this share only: rates are noisy.
	decay = 0.8
	// WindowMax is the protocol's limit.
	WindowMax = 100_000
	// What a handler that returns at once may have at hand; more buys nothing.
	adaptiveMax = 20_000
	// A change smaller than this share is not worth a frame.
	stepMin = 0.25
)

// Window is how many jobs a worker asks for, to keep its runners busy and no more: the runners, plus
// what was finished in the last moments. A worker with slow handlers holds what it runs and nothing
// else, so that jobs do not wait here while others are idle.
type Window struct {
	runners    int
	isFixed    bool
	measuredAt time.Time
	finished   int64
	rate       float64
	size       int
}

// NewWindow returns a window that follows the work, or the fixed one if that is not negative.
func NewWindow(now time.Time, runners, fixed int) *Window {
	w := &Window{runners: runners, isFixed: fixed >= 0, measuredAt: now, size: runners}
	if w.isFixed {
		w.size = fixed
	}
	w.size = min(w.size, WindowMax)
	return w
}

// Size returns how many jobs to have at hand, started ones included.
func (w *Window) Size() int { return w.size }

// IsAtRest reports whether there is nothing to measure until jobs are finished again.
func (w *Window) IsAtRest() bool {
	return w.isFixed || (w.rate == 0 && w.size == min(w.runners, WindowMax))
}

// Measure takes in how many jobs were finished since the start; it returns true if Size changed.
func (w *Window) Measure(now time.Time, finished int64) bool {
	elapsed := now.Sub(w.measuredAt)
	if w.isFixed || elapsed < measureInterval {
		return false
	}
	w.measuredAt = now
	rate := float64(finished-w.finished) / elapsed.Seconds()
	w.finished = finished
	w.rate = max(rate, w.rate*decay)
	if w.rate < 1 {
		w.rate = 0
	}
	wanted := min(w.runners+int(w.rate*lookahead.Seconds()), max(w.runners, adaptiveMax), WindowMax)
	change := wanted - w.size
	if max(change, -change) <= int(float64(w.size)*stepMin) && wanted != w.runners {
		return false
	}
	w.size = wanted
	return change != 0
}
