package stream

import (
	"math"
	"testing"
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestNoIntervalOfTheServerMakesAStormOrAReconnect: whatever a server says, frames go out now and then, and it is not
// taken for silent at once.
func TestNoIntervalOfTheServerMakesAStormOrAReconnect(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		math.MinInt64:    50 * time.Millisecond,
		-time.Second:     50 * time.Millisecond,
		1:                50 * time.Millisecond,
		0:                30 * time.Second,
		10 * time.Second: 10 * time.Second,
		24 * time.Hour:   time.Minute,
		math.MaxInt64:    time.Minute,
	} {
		var h heartbeat
		h.connect(start)
		h.opened(start, given)
		if pause := h.nextFrame(false).Sub(start); pause != want*8/10 {
			t.Errorf("%v: a frame every %v", given, pause)
		}
		if silent := h.silentAt.Sub(start); silent != 3*want || !h.nextCheck().After(start) {
			t.Errorf("%v: silent after %v", given, silent)
		}
	}
}

// TestNoLeaseOfTheServerMakesAStorm: each held lease asks for frames, three in its time; one of a millisecond would
// ask for thousands a second.
func TestNoLeaseOfTheServerMakesAStorm(t *testing.T) {
	for millis, want := range map[int64]time.Duration{
		math.MinInt64: 8 * time.Second, 1: 50 * time.Millisecond, 3_000: time.Second, math.MaxInt64: 8 * time.Second,
		math.MaxInt64/1_000_000 + 2: 8 * time.Second, // as nanoseconds it is too large, and would be a short one
	} {
		session := newSession()
		opened(session, nil)
		run := &joblinev1.LeasedRun{FirstId: 1, Delivery: 1, Payloads: make([][]byte, 1), LeaseMs: millis}
		session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}})
		session.Frames(start)
		if pause := session.NextDeadline(start).Sub(start); pause != want {
			t.Errorf("a lease of %d ms: a frame every %v", millis, pause)
		}
	}
}
