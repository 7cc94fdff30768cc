package jobline

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// gather opens a call for fresh jobs: at once while there are few, and for those of some time while there are many.
func (s *sharedWaits) gather() {
	if s.isGathering || len(s.fresh) == 0 {
		return
	}
	pause := time.Duration(0)
	if open := len(s.calls) + s.retiring; open >= waitCallsMany {
		pause = gatherMore
	} else if open >= waitCallsFew {
		pause = gatherWaits
	} else {
		s.openFresh()
		return
	}
	s.isGathering = true
	time.AfterFunc(pause, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.isGathering = false
		s.openFresh()
		s.gather()
	})
}

func (s *sharedWaits) openFresh() {
	count := min(len(s.fresh), waitIDsMax)
	if count == 0 {
		return
	}
	ids := s.fresh[:count:count]
	s.fresh = slices.Clone(s.fresh[count:])
	s.open(ids)
}

// open opens a call, which has these jobs from now on.
func (s *sharedWaits) open(ids []uint64) {
	ctx, end := context.WithCancel(context.Background())
	call := &waitCall{ids: ids, live: len(ids), since: time.Now(), ctx: ctx, end: end}
	for _, id := range ids {
		s.jobs[id].call = call
	}
	s.calls[call] = struct{}{}
	go s.run(call)
	s.mergeLater()
}

// merge puts the jobs of calls that are not half full into one.
func (s *sharedWaits) merge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isMerging = false
	if len(s.calls) <= waitCallsKept {
		return
	}
	var small []*waitCall
	for call := range s.calls {
		if call.live <= waitIDsMax/2 && time.Since(call.since) >= mergeWaitCalls/2 {
			small = append(small, call)
		}
	}
	slices.SortFunc(small, func(a, b *waitCall) int { return cmp.Compare(a.live, b.live) })
	var ids []uint64
	count, total := 0, 0
	for ; count < len(small) && total+small[count].live <= waitIDsMax; count++ {
		total += small[count].live
	}
	if count > 1 {
		for _, call := range small[:count] {
			ids = append(ids, s.liveOf(call)...)
			delete(s.calls, call)
			call.isRetired = true
			s.retiring++
			time.AfterFunc(waitOverlap, call.end)
		}
		s.open(ids)
	}
	s.mergeLater()
}

func (s *sharedWaits) mergeLater() {
	if len(s.calls) > waitCallsKept && !s.isMerging {
		s.isMerging = true
		time.AfterFunc(mergeWaitCalls, s.merge)
	}
}
