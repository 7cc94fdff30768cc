package jobline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

func stored(int, *joblinev1.PushRequest) error { return nil }

func TestWaitThatEndsWithoutAnAnswerIsNotRepeatedAtOnce(t *testing.T) {
	f, client := startFake(t, stored, nil)
	ctx, cancel := context.WithTimeout(newContext(t), 400*time.Millisecond)
	defer cancel()
	if _, err := client.WaitOne(ctx, 7); !errors.Is(err, jobline.ErrWaitTimeout) {
		t.Errorf("got %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits < 2 || f.waits > 10 {
		t.Errorf("%d calls in 0.4 s", f.waits)
	}
}

func TestAnswerOfAnotherJobOrOfOneThatGoesOnIsAnError(t *testing.T) {
	for what, answer := range map[string]*joblinev1.WaitResponse{
		"another job": {Id: 8, State: jobline.StateCompleted},
		"no end":      {Id: 7, State: jobline.StateReady},
		"no state":    {Id: 7},
		"another's":   {Id: 8, PartialNumber: 1, PartialDelivery: 1},
		"a piece":     {Id: 7, State: jobline.StateCompleted, PartialNumber: 1, PartialDelivery: 1},
	} {
		f, client := startFake(t, stored, nil)
		f.ends = []*joblinev1.WaitResponse{answer}
		ctx, cancel := context.WithTimeout(newContext(t), 2*time.Second)
		defer cancel()
		_, err := client.WaitOne(ctx, 7)
		var e *jobline.Error
		if !errors.As(err, &e) || !errors.Is(err, jobline.ErrInternal) || e.Reason != "UNEXPECTED_ANSWER" || e.Retryable() {
			t.Errorf("%s: got %v", what, err)
		}
		if what == "a piece" { // which Partials asks for
			continue
		}
		for piece, err := range client.Partials(ctx, 7) {
			if !errors.Is(err, jobline.ErrInternal) {
				t.Errorf("%s: got %v, %v", what, piece, err)
			}
		}
	}
}

func TestResultThatMayNotBeSeenIsNotTakenForNone(t *testing.T) {
	f, client := startFake(t, stored, nil)
	f.ends = []*joblinev1.WaitResponse{{Id: 7, State: jobline.StateCompleted, ResultHidden: true}}
	end := must[jobline.JobEnd](t)(client.WaitOne(newContext(t), 7))
	if result, err := jobline.ResultOf[int](end); !errors.Is(err, jobline.ErrPermissionDenied) {
		t.Errorf("got %v, %v", result, err)
	}
	f, client = startFake(t, stored, nil)
	f.ends = []*joblinev1.WaitResponse{{Id: 7, PartialNumber: 1, PartialDelivery: 1, ResultHidden: true}}
	for piece, err := range client.Partials(newContext(t), 7) {
		if !errors.Is(err, jobline.ErrPermissionDenied) {
			t.Errorf("got %v, %v", piece, err)
		}
	}
}

func TestPushedPayloadsAreCounted(t *testing.T) {
	f, client := startFake(t, stored, nil)
	f.missing = 1
	lot, err := client.PushPayloads(newContext(t), "q", [][]byte{{1}, {2}, {3}}, nil)
	var e *jobline.Error
	if !errors.As(err, &e) || e.Reason != "UNEXPECTED_ANSWER" || e.Definite() || lot.Count != 0 {
		t.Errorf("got %v, %v", lot, err)
	}
}
