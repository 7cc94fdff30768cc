package stream

import "time"

const (
	// OpenTimeout is how long the server may take to answer the first frame.
	OpenTimeout = 10 * time.Second
	// The time between frames until the server sets it.
	intervalDefault = 30 * time.Second
	// What a server may set: below it frames are a storm, above it nobody notices a dead connection.
	intervalMin = 50 * time.Millisecond
	intervalMax = time.Minute
	// Intervals of silence after which the server counts as gone.
	silentIntervals = 3
	// Far is a deadline that never comes.
	Far = 365 * 24 * time.Hour
)

// heartbeat knows when an empty frame is due, and when the server has been silent for too long.
type heartbeat struct {
	interval  time.Duration
	leaseMin  time.Duration // the shortest held lease
	sentAt    time.Time
	silentAt  time.Time
	checkedAt time.Time
}

func (h *heartbeat) connect(now time.Time) {
	h.interval = or(h.interval, intervalDefault)
	h.sentAt, h.checkedAt = now, now
	h.silentAt = now.Add(OpenTimeout)
}

func (h *heartbeat) opened(now time.Time, interval time.Duration) {
	h.interval = min(max(or(interval, intervalDefault), intervalMin), intervalMax)
	h.received(now)
}

func (h *heartbeat) received(now time.Time) { h.silentAt = now.Add(silentIntervals * h.interval) }

// leased notes the length of a lease; 0: unknown.
func (h *heartbeat) leased(lease time.Duration, holdsOthers bool) {
	if !holdsOthers {
		h.leaseMin = 0
	}
	if lease > 0 && (h.leaseMin == 0 || lease < h.leaseMin) {
		h.leaseMin = lease
	}
}

// nextFrame returns when a frame is due, even an empty one: at 80 % of the interval, or a third of
// the shortest held lease, as each frame keeps all leases alive.
func (h *heartbeat) nextFrame(holdsLeases bool) time.Time {
	pause := h.interval * 8 / 10
	if holdsLeases && h.leaseMin > 0 {
		pause = min(pause, max(h.leaseMin/3, intervalMin))
	}
	return h.sentAt.Add(pause)
}

// nextCheck returns when to ask isSilent again: twice per interval, or it could not tell silence from
// a stopped process.
func (h *heartbeat) nextCheck() time.Time {
	next := h.checkedAt.Add(h.interval / 2)
	if h.silentAt.Before(next) {
		return h.silentAt
	}
	return next
}

// isSilent reports whether the server was silent for three intervals. If this program itself did not
// run for a while, the server's frames may be waiting unread, so it gets the time again.
func (h *heartbeat) isSilent(now time.Time) bool {
	if stopped := now.Sub(h.checkedAt) - h.interval; stopped > 0 {
		h.silentAt = h.silentAt.Add(stopped)
	}
	h.checkedAt = now
	return !now.Before(h.silentAt)
}

func or(given, otherwise time.Duration) time.Duration {
	if given == 0 {
		return otherwise
	}
	return given
}
