package jobline

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyWithdrawnPushesDoNotEachMoveAllOthers: ten thousand callers whose context ended at once took seconds, under
// the lock that all pushes need.
func TestManyWithdrawnPushesDoNotEachMoveAllOthers(t *testing.T) {
	const count = 10_000
	l := &lane{}
	pushes := make([]*push, count)
	for i := range pushes {
		pushes[i] = &push{payload: fmt.Append(nil, i)}
	}
	l.queue = append(l.queue, pushes...)
	bytes := allocated(func() {
		for i, one := range pushes {
			if i%10 != 0 {
				l.withdraw(one)
			}
			if l.gone*2 > len(l.queue)+1 {
				t.Fatalf("%d of %d are gone", l.gone, len(l.queue))
			}
		}
	})
	if bytes > 1<<20 {
		t.Errorf("%d bytes", bytes)
	}
	for i, one := range l.cut(count, count*10) {
		if string(one.payload) != fmt.Sprint(10*i) || !one.isSent {
			t.Fatalf("at %d is %q", i, one.payload)
		}
	}
	if len(l.queue) != 0 || l.gone != 0 {
		t.Errorf("%d are left, %d gone", len(l.queue), l.gone)
	}
}

func TestEachOfManyWaitsForOneJobKnowsItsPlace(t *testing.T) {
	const count = 1_000
	s := &sharedWaits{jobs: map[uint64]*waitedJob{}, calls: map[*waitCall]struct{}{}, isGathering: true}
	waits := make([]*sharedWait, count)
	for i := range waits {
		waits[i] = s.join([]uint64{7, uint64(100 + i)})
	}
	for i := range count {
		left := waits[i*7%count] // in an order of its own
		if ids := s.leave(left); len(ids) != 2 {
			t.Fatalf("%v were left", ids)
		}
		job := s.jobs[7]
		if job == nil {
			if i != count-1 {
				t.Fatalf("the job is forgotten after %d", i)
			}
			break
		}
		for place, one := range job.waits {
			if one.left[7] != place || one == left {
				t.Fatalf("after %d: at %d is one of %d", i, place, one.left[7])
			}
		}
	}
	if len(s.jobs) != 0 || len(s.fresh) != 0 {
		t.Errorf("%d jobs are kept", len(s.jobs))
	}
}

// TestStacksOfManyHandlersAreOfOneDump: it stops the program, and thousands of them did for minutes.
func TestStacksOfManyHandlersAreOfOneDump(t *testing.T) {
	name, here, end := make(chan string), make(chan struct{}), make(chan struct{})
	go func() {
		name <- thisGoroutine()
		close(here)
		waitForTheEnd(end)
	}()
	goroutine := <-name
	<-here
	var dump stackDump
	bytes := allocated(func() {
		for range 1_000 {
			if stack := dump.of(goroutine); !strings.HasPrefix(stack, goroutine) || !strings.Contains(stack, "many_internal_test.go") {
				t.Fatalf("got %s", stack)
			}
			if stack := dump.of("goroutine 0 "); stack != "its stack was not found" {
				t.Fatalf("got %s", stack)
			}
		}
	})
	close(end)
	if bytes > 3*dumpBytesMax {
		t.Errorf("%d bytes", bytes)
	}
}

func waitForTheEnd(end chan struct{}) { <-end }
