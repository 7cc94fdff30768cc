package pacing

import (
	"sync/atomic"
	"time"
)

// ConfirmMax is the time that the server has to confirm the last settles.
const ConfirmMax = 5 * time.Second

// Stage is a stage of a stop.
type Stage int

// The stages of a stop. Each ends early when nothing is left for it, and at once at another request.
const (
	Working Stage = iota
	Finishing
	Cancelling
	Releasing
	Stopped
)

// Drain is how one worker stops: finish, then cancel, then release. A polite stop never costs a job
// more than a kill does: running jobs may finish, jobs that have not started are released at once, and
// jobs that do not end are released rather than left to their leases.
type Drain struct {
	lengths   map[Stage]time.Duration
	endsAt    time.Time
	requested atomic.Int32
	taken     int32
	stage     atomic.Int32

	idleLimit time.Duration
	idleSince time.Time
	finished  int64
}

// NewDrain returns the drain of a worker whose handlers have soft to finish, and hard to end after
// their cancellation. With idleLimit it stops when it was idle for so long; 0: never.
func NewDrain(soft, hard, idleLimit time.Duration) *Drain {
	lengths := map[Stage]time.Duration{Finishing: soft, Cancelling: hard, Releasing: ConfirmMax}
	return &Drain{lengths: lengths, idleLimit: idleLimit, finished: -1}
}

// RequestStop requests the stop, or its next stage. Safe for use by many goroutines.
func (d *Drain) RequestStop() { d.requested.Add(1) }

// RequestFirstStop requests the stop, unless one was requested before. Safe for use by many goroutines.
func (d *Drain) RequestFirstStop() { d.requested.CompareAndSwap(0, 1) }

// Stage returns where the worker is. Safe for use by many goroutines.
func (d *Drain) Stage() Stage { return Stage(d.stage.Load()) }

// CheckIdle requests the stop if the worker was idle for long enough; it returns the time until that
// may be, and whether it may be at all. isBusy: there is a job at hand, or no connection. Jobs that came
// and went between two checks are seen by finished, how many are done with since the start.
func (d *Drain) CheckIdle(now time.Time, isBusy bool, finished int64) (time.Duration, bool) {
	if d.idleLimit == 0 || d.Stage() != Working {
		return 0, false
	}
	if isBusy || finished != d.finished || d.idleSince.IsZero() {
		d.idleSince, d.finished = now, finished
	}
	left := d.idleSince.Add(d.idleLimit).Sub(now)
	if left <= 0 {
		d.idleLimit = 0
		d.RequestStop()
	}
	return max(left, 0), true
}

// Step returns the stage that begins now, if one does; call again until none does. isIdle: no handler
// runs. isConfirmed: the server knows all that was settled.
func (d *Drain) Step(now time.Time, isIdle, isConfirmed bool) (Stage, bool) {
	stage := d.Stage()
	if stage == Stopped {
		return stage, false
	}
	if d.taken < d.requested.Load() {
		d.taken++
	} else if !d.isOver(stage, now, isIdle, isConfirmed) {
		return stage, false
	}
	stage++
	d.stage.Store(int32(stage))
	d.endsAt = now.Add(d.lengths[stage])
	return stage, true
}

// EndsAt returns when the stage ends at the latest.
func (d *Drain) EndsAt() time.Time { return d.endsAt }

func (d *Drain) isOver(stage Stage, now time.Time, isIdle, isConfirmed bool) bool {
	switch stage {
	case Working:
		return false
	case Releasing:
		if isConfirmed {
			return true
		}
	case Finishing, Cancelling:
		if isIdle {
			return true
		}
	}
	return !now.Before(d.endsAt)
}
