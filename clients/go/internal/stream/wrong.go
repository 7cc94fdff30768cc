package stream

import (
	"fmt"
	"math"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Jobs that a server may say are held: twice the largest window. Each that is unknown here is given back.
const heldMax = 200_000

// wrongIn returns what a frame has that no server of this protocol sends, "" for none: nothing of it is handled.
func (s *Session) wrongIn(frame *joblinev1.StreamResponse) string {
	if opened := frame.GetOpened(); opened != nil {
		switch count := len(opened.GetHeldIds()); {
		case s.isOpen:
			return "the server opened a stream twice"
		case count != len(opened.GetHeldDeliveries()):
			return fmt.Sprintf("the server says that %d jobs are held, by %d leases", count, len(opened.GetHeldDeliveries()))
		case count > heldMax:
			return fmt.Sprintf("the server says that %d jobs are held, more than any window", count)
		}
	}
	if len(frame.GetRuns())+len(frame.GetJobs())+len(frame.GetOpened().GetHeldIds()) > 0 && !s.hasConfirmed() {
		return fmt.Sprintf("the server sends jobs and has not confirmed %d that are settled", s.settles.jobs())
	}
	for _, run := range frame.GetRuns() {
		if count := uint64(len(run.GetPayloads())); count > 0 && run.GetFirstId() > math.MaxUint64-(count-1) {
			return "the server sent a run of jobs with ids that are none"
		}
		for _, column := range run.GetHeaderColumns() {
			if len(column.GetValues()) != len(run.GetPayloads()) {
				return fmt.Sprintf("the server sent %d headers for %d jobs", len(column.GetValues()), len(run.GetPayloads()))
			}
		}
	}
	return ""
}
