package jobline

import (
	"testing"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestAnswerToAWaitThatHasNoCallYet comes of an older call, whose own wait for the job was given up.
func TestAnswerToAWaitThatHasNoCallYet(t *testing.T) {
	s := &sharedWaits{jobs: map[uint64]*waitedJob{}, calls: map[*waitCall]struct{}{}, isGathering: true}
	w := s.join([]uint64{7})
	s.answer(&joblinev1.WaitResponse{Id: 7, State: StateCompleted})
	if ended, err, isOver := s.news(w); len(ended) != 1 || err != nil || !isOver {
		t.Errorf("%v, %v, %v", ended, err, isOver)
	}
	s.isGathering = false
	s.gather()
	if len(s.calls) != 0 || len(s.fresh) != 0 {
		t.Errorf("%d calls, %d jobs without one", len(s.calls), len(s.fresh))
	}
}
