// Package pauses computes growing pauses with jitter, for retries and reconnects.
package pauses

import (
	"math/rand/v2"
	"time"
)

// Pauses double from First up to Longest. Each is drawn from its upper half, so that many clients
// that lost the same server do not return together.
type Pauses struct {
	First, Longest time.Duration
}

// Retry is for calls whose outcome is unknown, Reconnect for a worker's stream.
var (
	Retry     = Pauses{First: 50 * time.Millisecond, Longest: 2 * time.Second}
	Reconnect = Pauses{First: 100 * time.Millisecond, Longest: 5 * time.Second}
)

// After returns the pause after this many tries, from 1.
func (p Pauses) After(tries int) time.Duration {
	whole := p.Longest
	if doublings := max(tries-1, 0); doublings < 30 {
		whole = min(whole, p.First<<doublings)
	}
	half := whole / 2
	return half + rand.N(half+1)
}
