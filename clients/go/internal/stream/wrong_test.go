package stream

import (
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
