package pacing

import (
	"testing"
	"time"
)

func begins(f *Failures, now time.Time) bool {
	_, isNew := f.Failed(now)
	return isNew
}

// firstThatBegins returns after how many failures a pause begins, of up to so many.
func firstThatBegins(f *Failures, most int) int {
	for i := range most {
		if begins(f, start) {
			return i + 1
		}
	}
	return 0
}

func ends(f *Failures, now time.Time) bool {
	hasEnded, _, _ := f.Resume(now)
	return hasEnded
}

func TestFailuresInARowBeginAPause(t *testing.T) {
	f := NewFailures(3, 10*time.Second)
	f.Succeeded()
	if firstThatBegins(f, 2) != 0 {
		t.Error("two are enough")
	}
	f.Succeeded() // begins the count anew
	if firstThatBegins(f, 2) != 0 || f.IsPaused() {
		t.Error("a success does not count")
	}
	if row, isNew := f.Failed(start); row != 3 || !isNew || !f.IsPaused() {
		t.Errorf("after %d in a row it begins: %v", row, isNew)
	}
	if hasEnded, next, isNext := f.Resume(start.Add(time.Second)); hasEnded || !isNext || next != 9*time.Second {
		t.Errorf("the pause: %v, %v, %s", hasEnded, isNext, next)
	}
}

func TestWhatEndsInAPauseNeitherLengthensNorEndsIt(t *testing.T) {
	f := NewFailures(1, 10*time.Second)
	if !begins(f, start) || begins(f, start.Add(9*time.Second)) {
		t.Error("a pause within a pause")
	}
	f.Succeeded()
	if ends(f, start.Add(10*time.Second-1)) || !f.IsPaused() {
		t.Error("it ended too early")
	}
	if !ends(f, start.Add(10*time.Second)) || ends(f, start.Add(10*time.Second)) || f.IsPaused() {
		t.Error("it did not end, or twice")
	}
}

func TestAfterAPauseOneMoreFailureIsEnoughUntilAJobSucceeds(t *testing.T) {
	f := NewFailures(3, time.Second)
	for range 5 { // two of them in the pause
		f.Failed(start)
	}
	if !ends(f, start.Add(time.Second)) {
		t.Fatal("the pause did not end")
	}
	if row, isNew := f.Failed(start.Add(2 * time.Second)); row != 3 || !isNew {
		t.Errorf("%d in a row: %v", row, isNew)
	}
	if !ends(f, start.Add(3*time.Second)) {
		t.Fatal("the pause did not end")
	}
	f.Succeeded()
	if firstThatBegins(f, 3) != 3 {
		t.Error("a success did not begin the count anew")
	}
}

func TestAStoppingWorkerPausesNoMore(t *testing.T) {
	f := NewFailures(1, time.Second)
	f.Failed(start)
	f.Close()
	if f.IsPaused() || begins(f, start) || ends(f, start.Add(time.Hour)) {
		t.Error("it pauses")
	}
}
