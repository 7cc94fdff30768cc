package outbox

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// The 42 bits of the counter in the middle of an id: 12 before the variant, 30 behind it.
const idSteps = 1 << 42

var lastID struct {
	sync.Mutex
	milliseconds, counter uint64
}

// newID returns a UUID of version 7 (RFC 9562) that is greater than all earlier ones of this process: rows
// are pushed in the order of their ids.
func newID() string {
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	now := uint64(time.Now().UnixMilli())
	lastID.Lock()
	switch {
	case now > lastID.milliseconds:
		// A new millisecond starts its counter low, at a random place; within one it goes up.
		lastID.milliseconds, lastID.counter = now, uint64(binary.BigEndian.Uint32(drawn[:4]))
	case lastID.counter == idSteps-1:
		lastID.milliseconds, lastID.counter = lastID.milliseconds+1, 0
	default:
		lastID.counter++
	}
	milliseconds, counter := lastID.milliseconds, lastID.counter
	lastID.Unlock()
	high := milliseconds<<16 | 0x7<<12 | counter>>30
	low := 0b10<<62 | (counter&(1<<30-1))<<32 | uint64(binary.BigEndian.Uint32(drawn[4:]))
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&(1<<48-1))
}
