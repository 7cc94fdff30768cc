package jobline

import (
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const joblineFirst = joblinev1.LeaseReason_LEASE_REASON_FIRST

// arm has the idle entities looked for after a time, unless that is to happen anyway; the lock is held.
func (e *Entities[S]) arm(pause time.Duration) {
	if e.timer == nil {
		e.timer = time.AfterFunc(pause, e.sweep)
	}
}

// sweep lets go of those that were idle for long enough.
func (e *Entities[S]) sweep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer = nil
	now := time.Now()
	for oldest := e.oldest(); oldest != nil; oldest = e.oldest() {
		wait := oldest.usedAt.Add(e.options.IdleAfter).Sub(now)
		if wait > 0 || e.count >= leavingMax {
			e.arm(max(wait, sweepAgain))
			return
		}
		e.drop(oldest.key, IdleUnused)
	}
	// Those that run arm it when they end.
}

// close lets go of all entities; the worker has stopped.
func (e *Entities[S]) close() {
	end := time.NewTimer(onIdleTime)
	defer end.Stop()
	for {
		e.mu.Lock()
		for oldest := e.oldest(); oldest != nil && e.count < leavingMax; oldest = e.oldest() {
			e.drop(oldest.key, IdleStopping)
		}
		left, count, rest := e.left, e.count, len(e.active)
		isOver := count == 0
		if isOver && e.timer != nil {
			e.timer.Stop()
		}
		e.mu.Unlock()
		if !isOver {
			select {
			case <-left:
				continue
			case <-end.C:
			}
		}
		if count+rest > 0 {
			e.log.Warn("entities were dropped as they are", "kind", e.kind, "entities", count+rest)
		}
		return
	}
}

// letGoOfEntities lets go of the entities of all kinds at the same time.
func letGoOfEntities(closes []func()) {
	var all sync.WaitGroup
	for _, one := range closes {
		all.Go(one)
	}
	all.Wait()
}
