package stream

import (
	"strings"
	"testing"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	windowOfTests = 10
	// What is settled at most without a confirm before the server is left.
	unconfirmedBound = leaveWindows*windowOfTests + surplusJobs + 2*windowOfTests + surplusJobs
)

// slowServer decides settles at once and confirms them when it is told to; its worker settles at once.
type slowServer struct {
	session            *Session
	window             int
	undecided, settled int
	seqs               []uint64
}

func newSlowServer() *slowServer {
	server := &slowServer{session: newSession(), window: windowOfTests}
	opened(server.session, nil)
	server.read()
	return server
}

func (s *slowServer) read() {
	for _, frame := range s.session.Frames(start) {
		for _, settle := range frame.GetSettles() {
			s.seqs = append(s.seqs, settle.GetSeq())
			s.undecided -= len(settle.GetAckIds())
		}
		if frame.GetWindow() != nil {
			s.window = int(frame.GetWindow().GetMaxInFlight())
		}
	}
}

// send hands out one job, which is settled; it returns what was wrong with that.
func (s *slowServer) send() string {
	run := &joblinev1.LeasedRun{FirstId: uint64(s.settled + 1), Delivery: 1, Payloads: make([][]byte, 1), LeaseMs: 30_000}
	received := s.session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}})
	if received.Wrong != "" {
		return received.Wrong
	}
	s.session.Ack(received.Jobs[0], nil)
	s.settled++
	s.undecided++
	return ""
}

func (s *slowServer) confirmAll() {
	for len(s.seqs) > 0 {
		confirm := &joblinev1.StreamConfirm{Seq: s.seqs[0]}
		s.seqs = s.seqs[1:]
		s.session.Handle(start, &joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{confirm}})
		s.read()
	}
}

// reconnect opens another stream on which these leases are held; it returns what was wrong with that.
func (s *slowServer) reconnect(held map[uint64]uint64) string {
	s.session.Disconnect()
	message := &joblinev1.StreamOpened{Session: "s", Resumed: true}
	for id, delivery := range held {
		message.HeldIds, message.HeldDeliveries = append(message.HeldIds, id), append(message.HeldDeliveries, delivery)
	}
	s.session.Connect(start)
	s.read()
	received := s.session.Handle(start, &joblinev1.StreamResponse{Opened: message})
	s.read()
	return received.Wrong
}

// TestServerThatCommitsNothingForLongIsAskedForJobsAllTheSame: a disk may be full for minutes. It keeps to the window,
// and so comes to an end by itself.
func TestServerThatCommitsNothingForLongIsAskedForJobsAllTheSame(t *testing.T) {
	server := newSlowServer()
	for range 50 {
		for range server.window - server.undecided {
			if wrong := server.send(); wrong != "" {
				t.Fatal(wrong)
			}
		}
		server.read() // as large as settles can be: all goes out together
	}
	if server.settled != (unconfirmedMax+1)*windowOfTests || server.window != windowOfTests {
		t.Fatalf("%d jobs were settled, and %d are asked for", server.settled, server.window)
	}
	server.confirmAll()
	if wrong := server.send(); wrong != "" || server.session.IsConfirmed() {
		t.Fatal(wrong)
	}
	server.read()
	server.confirmAll()
	if !server.session.IsConfirmed() {
		t.Fatal("something is not confirmed")
	}
}

// TestServerThatDeliversAndNeverConfirmsIsLeft: what it is to confirm would fill the memory. Nothing is lost: all is
// settled again on the next stream, and jobs are asked for when some of it is confirmed.
func TestServerThatDeliversAndNeverConfirmsIsLeft(t *testing.T) {
	server := newSlowServer()
	wrong := ""
	for wrong == "" && server.settled < 2*unconfirmedBound {
		wrong = server.send()
		server.read()
	}
	if !strings.Contains(wrong, "has not confirmed") || server.settled > unconfirmedBound || server.window != 0 {
		t.Fatalf("%q after %d jobs, and %d are asked for", wrong, server.settled, server.window)
	}
	told := len(server.seqs)
	server.seqs = nil
	if wrong := server.reconnect(nil); wrong != "" || len(server.seqs) != told || server.window != 0 {
		t.Fatalf("%q: %d settles came again, and %d jobs are asked for", wrong, len(server.seqs), server.window)
	}
	server.confirmAll()
	if server.window != windowOfTests || !server.session.IsConfirmed() {
		t.Fatalf("%d jobs are asked for", server.window)
	}
}

// TestServerThatSaysOfEachStreamThatOtherJobsAreHeldIsLeft: each is given back, which it is to confirm as well.
func TestServerThatSaysOfEachStreamThatOtherJobsAreHeldIsLeft(t *testing.T) {
	server := newSlowServer()
	wrong, next := "", uint64(1)
	for wrong == "" && next < 2*unconfirmedBound {
		held := map[uint64]uint64{}
		for range 100 {
			held[next] = 1
			next++
		}
		wrong = server.reconnect(held)
	}
	if !strings.Contains(wrong, "has not confirmed") || server.session.settles.jobs() > unconfirmedBound {
		t.Fatalf("%q after %d jobs", wrong, next)
	}
}
