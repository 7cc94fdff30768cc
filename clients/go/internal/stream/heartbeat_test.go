package stream

import (
	"math"
	"testing"
	"time"
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
