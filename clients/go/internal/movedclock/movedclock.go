// Package movedclock has how far tests of this process have moved the clocks of their servers. A context ends by the
// clock of the machine: a wait that ends with one asks here whether its time has passed by the clock of the server.
package movedclock

import (
	"sync"
	"time"
)

type clock struct {
	moved   time.Duration
	changed chan struct{} // closed at the next move
}

var (
	mu     sync.Mutex
	clocks = map[string]*clock{}
)

func of(address string) *clock {
	one := clocks[address]
	if one == nil {
		one = &clock{changed: make(chan struct{})}
		clocks[address] = one
	}
	return one
}

// Track has moves of a server's clock be known; before that nobody is told of them.
func Track(address string) {
	mu.Lock()
	defer mu.Unlock()
	of(address)
}

// Move says that the clock of a server was moved.
func Move(address string, by time.Duration) {
	mu.Lock()
	defer mu.Unlock()
	one := of(address)
	one.moved += by
	close(one.changed)
	one.changed = make(chan struct{})
}

// Of returns how far the clock of a server was moved, and what is closed when it is moved again: nil, which never is,
// for a server that no test has.
func Of(address string) (moved time.Duration, changed <-chan struct{}) {
	mu.Lock()
	defer mu.Unlock()
	one := clocks[address]
	if one == nil {
		return 0, nil
	}
	return one.moved, one.changed
}
