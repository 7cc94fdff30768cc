package stream

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

var start = time.Unix(1_000_000, 0)

func opened(session *Session, held map[uint64]uint64) *Received {
	message := &joblinev1.StreamOpened{Session: "s", HeartbeatInterval: durationpb.New(10 * time.Second), Resumed: held != nil}
	for id, delivery := range held {
		message.HeldIds, message.HeldDeliveries = append(message.HeldIds, id), append(message.HeldDeliveries, delivery)
	}
	session.Connect(start)
	session.Frames(start)
	return session.Handle(start, &joblinev1.StreamResponse{Opened: message})
}

func newSession() *Session {
	return NewSession(&joblinev1.StreamOpen{}, 10, 1<<20)
}

func deliver(session *Session, first, delivery uint64, count int) []*Job {
	run := &joblinev1.LeasedRun{FirstId: first, Delivery: delivery, Payloads: make([][]byte, count), LeaseMs: 30_000}
	return session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}}).Jobs
}

func settlesIn(frames []*joblinev1.StreamRequest) (settles []*joblinev1.StreamSettle) {
	for _, frame := range frames {
		settles = append(settles, frame.GetSettles()...)
	}
	return settles
}

func TestFirstFrameOpensAndNothingFollowsBeforeTheAnswer(t *testing.T) {
	session := newSession()
	session.Connect(start)
	frames := session.Frames(start)
	if len(frames) != 1 || frames[0].GetOpen() == nil || frames[0].GetWindow().GetMaxInFlight() != 10 {
		t.Fatalf("got %v", frames)
	}
	if frames := session.Frames(start.Add(time.Hour)); frames != nil {
		t.Fatalf("got %v", frames)
	}
}

func TestAcksArePackedAndSentAgainUntilConfirmed(t *testing.T) {
	session := newSession()
	opened(session, nil)
	jobs := deliver(session, 1, 1, 3)
	for _, job := range jobs {
		if !session.Ack(job, nil) || session.Ack(job, nil) {
			t.Fatal("a job is settled once")
		}
	}
	settles := settlesIn(session.Frames(start))
	if len(settles) != 1 || len(settles[0].GetAckIds()) != 3 || session.IsConfirmed() {
		t.Fatalf("got %v", settles)
	}
	session.Disconnect()
	opened(session, map[uint64]uint64{1: 1, 2: 1, 3: 1})
	again := settlesIn(session.Frames(start))
	if len(again) != 1 || again[0].GetSeq() != settles[0].GetSeq() || len(again[0].GetReleases()) != 0 {
		t.Fatalf("got %v", again)
	}
	session.Handle(start, &joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{{Seq: 1}}})
	if !session.IsConfirmed() {
		t.Fatal("not confirmed")
	}
}

func TestResumeLosesAndReleasesWhatTheServerSaysOtherwise(t *testing.T) {
	session := newSession()
	opened(session, nil)
	jobs := deliver(session, 1, 1, 2)
	session.Disconnect()
	received := opened(session, map[uint64]uint64{2: 1, 9: 4}) // 1 is lost; 9 came in a frame that did not
	if len(received.Lost) != 1 || received.Lost[0].Job != jobs[0] || jobs[0].IsHeld() || !jobs[1].IsHeld() {
		t.Fatalf("got %+v", received.Lost)
	}
	settles := settlesIn(session.Frames(start))
	if len(settles) != 1 || len(settles[0].GetReleases()) != 1 || settles[0].GetReleases()[0].GetId() != 9 {
		t.Fatalf("got %v", settles)
	}
}

func TestNewerLeaseEndsAnOlderOneAndIsSettledAlone(t *testing.T) {
	session := newSession()
	opened(session, nil)
	old := deliver(session, 1, 1, 1)[0]
	session.Ack(old, nil)
	newer := deliver(session, 1, 2, 1)[0]
	session.Ack(newer, nil)
	settles := settlesIn(session.Frames(start))
	if len(settles) != 1 || len(settles[0].GetAckIds()) != 1 || settles[0].GetAckDeliveries()[0] != 2 {
		t.Fatalf("got %v", settles)
	}
	third := deliver(session, 1, 3, 1)[0]
	received := session.Handle(start, &joblinev1.StreamResponse{Jobs: []*joblinev1.LeasedJob{{Id: 1, Delivery: 4}}})
	if third.IsHeld() || len(received.Lost) != 1 || len(received.Jobs) != 1 || session.Ack(third, nil) {
		t.Fatalf("got %+v", received)
	}
}

func TestReportsGoBeforeTheSettleAndCheckpointsAreRepeated(t *testing.T) {
	session := newSession()
	opened(session, nil)
	jobs := deliver(session, 1, 1, 2)
	half := 50.0
	session.Report(jobs[0], Report{Progress: &half, Checkpoint: []byte("c")})
	session.FinishPhase(jobs[0], "p", nil)
	session.Log(jobs[0], Line{Text: "l"})
	session.Ack(jobs[1], nil)
	frames := session.Frames(start)
	if len(frames[0].GetExtends()) != 2 || len(frames[0].GetLogs()) != 1 || len(frames[1].GetSettles()) != 1 {
		t.Fatalf("got %v", frames)
	}
	for range 2 {
		session.Disconnect()
		opened(session, map[uint64]uint64{1: 1})
		extends := session.Frames(start)[0].GetExtends()
		if len(extends) != 2 || extends[0].GetPhase() != "p" || string(extends[1].GetCheckpoint()) != "c" {
			t.Fatalf("got %v", extends)
		}
	}
}

func TestHeartbeatsKeepLeasesAndSilenceIsNoticed(t *testing.T) {
	session := newSession()
	opened(session, nil)
	session.Frames(start)
	if due := session.NextDeadline(start).Sub(start); due != 8*time.Second {
		t.Errorf("a frame is due after %v", due)
	}
	session.Handle(start, &joblinev1.StreamResponse{Jobs: []*joblinev1.LeasedJob{{Id: 1, Delivery: 1, LeaseMs: 3_000}}})
	if due := session.NextDeadline(start).Sub(start); due != time.Second {
		t.Errorf("with a lease of 3 s a frame is due after %v", due)
	}
	if frames := session.Frames(start.Add(time.Second)); len(frames) != 1 {
		t.Errorf("got %v", frames)
	}
	for at := 5 * time.Second; at < 30*time.Second; at += 5 * time.Second {
		if session.IsSilent(start.Add(at)) {
			t.Fatalf("silent after %v", at)
		}
	}
	if !session.IsSilent(start.Add(30 * time.Second)) {
		t.Error("not silent after three intervals")
	}
	opened(session, nil)
	if session.IsSilent(start.Add(time.Hour)) {
		t.Error("this process was stopped, and the server's frames wait unread")
	}
}

func TestDrainHalfClosesWhenAllIsSent(t *testing.T) {
	session := newSession()
	opened(session, nil)
	job := deliver(session, 1, 1, 1)[0]
	session.Drain()
	frames := session.Frames(start)
	if !frames[0].GetDrain() || session.MayHalfClose() {
		t.Fatalf("got %v", frames)
	}
	session.Settle(Interrupted(job.ID, job.Delivery))
	late := deliver(session, 2, 1, 1)[0] // on its way when the server read the drain
	session.Settle(Interrupted(late.ID, late.Delivery))
	for _, settle := range settlesIn(append(frames, session.Frames(start)...)) {
		session.Handle(start, &joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{{Seq: settle.GetSeq()}}})
	}
	if !session.MayHalfClose() || !session.IsConfirmed() {
		t.Fatal("all is confirmed")
	}
	session.Connect(start)
	if window := session.Frames(start)[0].GetWindow(); window.GetMaxInFlight() != 0 {
		t.Fatalf("a stream of a session that drains asks for %d jobs", window.GetMaxInFlight())
	}
}

// TestConfirmThatRepeatsItselfReportsEachJobOnce: whatever the server says, counts stay right and a line of the log
// comes once.
func TestConfirmThatRepeatsItselfReportsEachJobOnce(t *testing.T) {
	session := newSession()
	opened(session, nil)
	jobs := deliver(session, 1, 1, 2)
	session.Ack(jobs[0], nil)
	session.Settle(&joblinev1.FailItem{Id: 2, Delivery: 1})
	session.Frames(start)
	lost := joblinev1.SettleOutcome_SETTLE_OUTCOME_LEASE_LOST
	confirm := &joblinev1.StreamConfirm{Seq: 1}
	for range 1_000 {
		confirm.Exceptions = append(confirm.Exceptions, &joblinev1.SettleException{Index: 0, Outcome: lost})
		confirm.Dead = append(confirm.Dead, 1)
	}
	received := session.Handle(start, &joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{confirm}})
	if len(received.Reports) != 2 {
		t.Fatalf("%d reports", len(received.Reports))
	}
	if first := received.Reports[0]; first.ID != 1 || first.Outcome != lost || first.IsDead {
		t.Errorf("got %+v", first)
	}
	if second := received.Reports[1]; second.ID != 2 || !second.IsDead {
		t.Errorf("got %+v", second)
	}
}

func TestManyUnconfirmedSettlesGather(t *testing.T) {
	session := newSession()
	opened(session, nil)
	jobs := deliver(session, 1, 1, unconfirmedMax+5)
	for _, job := range jobs {
		session.Ack(job, nil)
		session.Frames(start)
	}
	session.Handle(start, &joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{{Seq: 1}}})
	if settles := settlesIn(session.Frames(start)); len(settles) != 1 || len(settles[0].GetAckIds()) != 5 {
		t.Fatalf("got %v", settles)
	}
}

// TestServerThatSendsMoreThanTheWindowIsLeft: what is held has a bound, and what came beyond it is given back on the
// next stream.
func TestServerThatSendsMoreThanTheWindowIsLeft(t *testing.T) {
	session := newSession() // of 10 jobs and 1 MiB
	opened(session, nil)
	session.Frames(start)
	send := func(first uint64, count, size int) *Received {
		run := &joblinev1.LeasedRun{FirstId: first, Delivery: 1, LeaseMs: 30_000}
		for range count {
			run.Payloads = append(run.Payloads, make([]byte, size))
		}
		return session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}})
	}
	if received := send(1, 20, 0); received.IsTooMany || len(received.Jobs) != 20 {
		t.Fatalf("a window may shrink while jobs are on their way: %v", received)
	}
	received := send(1_000, 500, 0)
	if !received.IsTooMany || len(session.Held()) != 120 || len(received.Jobs) != 100 {
		t.Fatalf("%v, %d held, %d new", received.IsTooMany, len(session.Held()), len(received.Jobs))
	}
	session.Disconnect()
	theirs := map[uint64]uint64{}
	for id := range session.Held() {
		theirs[id] = 1
	}
	theirs[1_499] = 1
	opened(session, theirs)
	if settles := settlesIn(session.Frames(start)); len(settles) != 1 || settles[0].GetReleases()[0].GetId() != 1_499 {
		t.Fatalf("what it did not take is given back: %v", settles)
	}
	for _, job := range session.Held() {
		session.Ack(job, nil)
	}
	if received := send(2_000, 99, 1<<20); !received.IsTooMany || len(received.Jobs) != 66 {
		t.Fatalf("%d jobs of 1 MiB", len(received.Jobs))
	}
	for _, job := range session.Held() {
		session.Ack(job, nil)
	}
	if received := send(3_000, 10, 1<<20); received.IsTooMany || len(received.Jobs) != 10 {
		t.Fatal("what was settled takes no room")
	}
}

// TestNoMoreJobsAreMadeOfARunThanMayBeHeld: an empty payload takes two bytes on the wire, and a job a hundred here.
func TestNoMoreJobsAreMadeOfARunThanMayBeHeld(t *testing.T) {
	session := newSession()
	opened(session, nil)
	run := &joblinev1.LeasedRun{FirstId: 1, Delivery: 1, Payloads: make([][]byte, 1_000_000), LeaseMs: 30_000}
	var received *Received
	allocated := testing.AllocsPerRun(1, func() {
		received = session.Handle(start, &joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}})
	})
	if jobs, isWhole := jobsOfRun(run, start, session.jobsMax()); len(jobs) != session.jobsMax() || isWhole {
		t.Errorf("%d jobs were made", len(jobs))
	}
	if !received.IsTooMany || len(session.held) != session.jobsMax() || allocated > 1_000 {
		t.Errorf("%d are held, after %v allocations", len(session.held), allocated)
	}
}
