package pacing

import (
	"testing"
	"time"
)

var start = time.Unix(1_000_000, 0)

func stages(drain *Drain, now time.Time, isIdle, isConfirmed bool) (begun []Stage) {
	for {
		stage, isNew := drain.Step(now, isIdle, isConfirmed)
		if !isNew {
			return begun
		}
		begun = append(begun, stage)
	}
}

func TestDrainTakesItsTimeForEachStage(t *testing.T) {
	drain := NewDrain(20*time.Second, 5*time.Second, 0)
	if got := stages(drain, start, true, true); got != nil {
		t.Fatalf("began %v by itself", got)
	}
	drain.RequestFirstStop()
	drain.RequestFirstStop() // which asks for nothing more
	for _, step := range []struct {
		after       time.Duration
		isIdle      bool
		isConfirmed bool
		last        Stage
	}{{0, false, false, Finishing}, {19 * time.Second, false, false, Finishing}, {20 * time.Second, false, false, Cancelling},
		{25 * time.Second, false, false, Releasing}, {26 * time.Second, false, false, Releasing}, {27 * time.Second, false, true, Stopped}} {
		stages(drain, start.Add(step.after), step.isIdle, step.isConfirmed)
		if drain.Stage() != step.last {
			t.Fatalf("after %v: %v", step.after, drain.Stage())
		}
	}
}

func TestIdleDrainIsOverAtOnceAndASecondRequestHurries(t *testing.T) {
	idle := NewDrain(time.Hour, time.Hour, 0)
	idle.RequestStop()
	if got := stages(idle, start, true, true); len(got) != 4 {
		t.Errorf("began %v", got)
	}
	hurried := NewDrain(time.Hour, time.Hour, 0)
	hurried.RequestStop()
	hurried.RequestStop()
	if stages(hurried, start, false, false); hurried.Stage() != Cancelling {
		t.Errorf("at %v", hurried.Stage())
	}
}

func TestIdleWorkerStopsAfterItsTime(t *testing.T) {
	drain := NewDrain(time.Hour, time.Hour, 10*time.Second)
	drain.CheckIdle(start, true, 0)
	if left, may := drain.CheckIdle(start.Add(9*time.Second), false, 5); !may || left != 10*time.Second {
		t.Errorf("%v left: jobs came and went", left)
	}
	drain.CheckIdle(start.Add(19*time.Second), false, 5)
	if stages(drain, start.Add(19*time.Second), true, true); drain.Stage() != Stopped {
		t.Errorf("at %v", drain.Stage())
	}
}

func TestWindowFollowsTheWorkAndComesBack(t *testing.T) {
	window := NewWindow(start, 16, -1)
	if window.Size() != 16 || !window.IsAtRest() {
		t.Fatalf("begins with %d", window.Size())
	}
	now, finished := start, int64(0)
	for range 20 {
		now, finished = now.Add(100*time.Millisecond), finished+1_000 // 10,000 a second
		window.Measure(now, finished)
	}
	if window.Size() < 900 || window.Size() > 1_100 {
		t.Errorf("at 10,000 jobs a second it is %d", window.Size())
	}
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		window.Measure(now, finished)
	}
	if window.Size() != 16 || !window.IsAtRest() {
		t.Errorf("at rest it is %d", window.Size())
	}
	fixed := NewWindow(start, 16, 0)
	if fixed.Measure(start.Add(time.Second), 1_000) || fixed.Size() != 0 {
		t.Errorf("a fixed window is %d", fixed.Size())
	}
}

func TestBatchesAreFullOrDue(t *testing.T) {
	var gather Gather[string, int]
	for job := range 5 {
		batch := gather.Add(start, "a", job, 3, time.Second)
		if (batch != nil) != (job == 2) {
			t.Fatalf("after job %d: %v", job, batch)
		}
	}
	left, isNext := gather.Due(start.Add(400*time.Millisecond), func(string, []int) { t.Error("too early") })
	if !isNext || left != 600*time.Millisecond {
		t.Errorf("the next is due in %v", left)
	}
	var due []int
	if _, isNext := gather.Due(start.Add(time.Second), func(_ string, jobs []int) { due = jobs }); isNext || len(due) != 2 {
		t.Errorf("due are %v", due)
	}
}

func TestGraceEndsOnceAHandler(t *testing.T) {
	grace := Grace[string]{Length: time.Second}
	at := func(after time.Duration, stopping ...string) []string {
		late, _, _ := grace.Expired(start.Add(after), stopping)
		return late
	}
	if late := at(0, "a"); late != nil {
		t.Errorf("late: %v", late)
	}
	if late := at(time.Second, "a", "b"); len(late) != 1 || late[0] != "a" {
		t.Errorf("late: %v", late)
	}
	if late := at(1500*time.Millisecond, "a", "b"); late != nil {
		t.Errorf("late: %v", late)
	}
	if late := at(2*time.Second, "b"); len(late) != 1 || late[0] != "b" {
		t.Errorf("late: %v", late)
	}
}
