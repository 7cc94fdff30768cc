package stream

import (
	"math"
	"testing"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestStreamIsOpenedOnce: a second answer would lose what is held, or give back what runs.
func TestStreamIsOpenedOnce(t *testing.T) {
	session := newSession()
	opened(session, nil)
	deliver(session, 1, 1, 1)
	again := &joblinev1.StreamResponse{Opened: &joblinev1.StreamOpened{Session: "another"}}
	received := session.Handle(start, again)
	if received.Wrong != "the server opened a stream twice" || len(received.Lost) > 0 || len(session.Held()) != 1 {
		t.Fatalf("%q, and %d leases are lost", received.Wrong, len(received.Lost))
	}
	session.Disconnect()
	if received := opened(session, map[uint64]uint64{1: 1}); received.Wrong != "" {
		t.Fatal(received.Wrong)
	}
}

// TestRunHasIDsThatAre: beyond the largest they would begin again at 0, and be those of other jobs.
func TestRunHasIDsThatAre(t *testing.T) {
	for payloads, isWrong := range map[int]bool{1: false, 2: true, 3: true} {
		session := newSession()
		opened(session, nil)
		run := &joblinev1.LeasedRun{FirstId: math.MaxUint64, Delivery: 1, Payloads: make([][]byte, payloads)}
		received := session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}})
		if (received.Wrong != "") != isWrong || isWrong && len(session.Held()) > 0 {
			t.Errorf("%d jobs: %q", payloads, received.Wrong)
		}
	}
}
