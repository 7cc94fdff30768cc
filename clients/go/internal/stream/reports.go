package stream

import (
	"slices"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Reports of one frame; the rest follow in the next.
	reportsMax = 10_000
	// Checkpoints of one frame; the one that goes over it still goes.
	checkpointBytesMax = 2 << 20
)

// Report is what a handler says of its job; nil fields say nothing.
type Report struct {
	Progress   *float64
	Message    *string
	Checkpoint []byte
}

type lease struct{ id, delivery uint64 }

// reports are those of one session that were not sent: progress, messages, checkpoints, and the ends
// of phases. The server does not confirm them, so the newest checkpoint and the finished phases of
// each held lease are kept, and sent again on a new stream.
type reports struct {
	waiting     queueOf[*joblinev1.ExtendItem]
	phases      []*joblinev1.ExtendItem
	checkpoints map[lease][]byte
	finished    map[lease][]*joblinev1.ExtendItem
	pieces      pieces
}

func (r *reports) isEmpty() bool {
	return r.waiting.isEmpty() && len(r.phases) == 0 && r.pieces.isEmpty()
}

// add adds a report; it replaces what was not sent yet, field by field.
func (r *reports) add(of lease, report Report) {
	item := r.waiting.get(of)
	if item == nil {
		item = &joblinev1.ExtendItem{Id: of.id, Delivery: of.delivery}
		r.waiting.put(of, item)
	}
	if report.Progress != nil {
		item.Progress = report.Progress
	}
	if report.Message != nil {
		item.Message = report.Message
	}
	if report.Checkpoint != nil {
		item.Checkpoint = report.Checkpoint
		if r.checkpoints == nil {
			r.checkpoints = map[lease][]byte{}
		}
		r.checkpoints[of] = report.Checkpoint
	}
}

// finishPhase adds the end of a phase. Progress within it is not worth sending any more.
func (r *reports) finishPhase(of lease, name string, result []byte) {
	if item := r.waiting.get(of); item != nil {
		item.Progress, item.Message = nil, nil
	}
	item := &joblinev1.ExtendItem{Id: of.id, Delivery: of.delivery, Phase: name, PhaseResult: result}
	r.phases = append(r.phases, item)
	if r.finished == nil {
		r.finished = map[lease][]*joblinev1.ExtendItem{}
	}
	r.finished[of] = append(r.finished[of], item)
}

// take removes and returns as many reports as one frame may carry.
func (r *reports) take() []*joblinev1.ExtendItem {
	items := r.pieces.take()
	total := 0
	for _, item := range items {
		total += len(item.GetPartial())
	}
	for len(r.phases) > 0 && total < checkpointBytesMax && len(items) < reportsMax {
		total += len(r.phases[0].GetPhaseResult())
		items = append(items, r.phases[0])
		r.phases = r.phases[1:]
	}
	if len(r.phases) > 0 {
		return items // what was reported since is about later phases
	}
	for total < checkpointBytesMax && len(items) < reportsMax {
		item, ok := r.waiting.pop()
		if !ok {
			break
		}
		total += len(item.GetCheckpoint())
		items = append(items, item)
	}
	return items
}

// forget drops the reports of a job that is done; the ends of its phases are sent before.
func (r *reports) forget(of lease) {
	r.waiting.remove(of)
	r.settled(of)
}

// lose drops the reports of a job whose lease is lost.
func (r *reports) lose(of lease) {
	r.forget(of)
	r.pieces.forget(of)
	if len(r.phases) > 0 {
		r.phases = slices.DeleteFunc(r.phases, func(item *joblinev1.ExtendItem) bool {
			return item.Id == of.id && item.Delivery == of.delivery
		})
	}
}

// settled keeps only the unsent report of a settled lease: another attempt may follow, so it is sent
// before the settle.
func (r *reports) settled(of lease) {
	delete(r.checkpoints, of)
	delete(r.finished, of)
}

// repeat queues finished phases and the newest checkpoints again for a new stream: they may have been
// lost with the old one.
func (r *reports) repeat() {
	isKnown := map[*joblinev1.ExtendItem]bool{}
	var again []*joblinev1.ExtendItem
	for _, items := range r.finished {
		for _, item := range items {
			isKnown[item] = true
		}
		again = append(again, items...)
	}
	r.phases = slices.DeleteFunc(r.phases, func(item *joblinev1.ExtendItem) bool { return isKnown[item] })
	r.phases = append(r.phases, again...)
	for of, checkpoint := range r.checkpoints {
		r.add(of, Report{Checkpoint: checkpoint})
	}
}

// queueOf is a map that remembers the order of its keys.
type queueOf[V any] struct {
	values map[lease]V
	order  []lease
}

func (q *queueOf[V]) isEmpty() bool { return len(q.values) == 0 }

func (q *queueOf[V]) get(of lease) V { return q.values[of] }

func (q *queueOf[V]) put(of lease, value V) {
	if q.values == nil {
		q.values = map[lease]V{}
	}
	q.values[of] = value
	q.order = append(q.order, of)
}

func (q *queueOf[V]) remove(of lease) {
	delete(q.values, of)
	if len(q.values) == 0 {
		q.order = nil
	}
}

func (q *queueOf[V]) pop() (V, bool) {
	for len(q.order) > 0 {
		first := q.order[0]
		q.order = q.order[1:]
		if value, ok := q.values[first]; ok {
			delete(q.values, first)
			return value, true
		}
	}
	var none V
	return none, false
}

func (q *queueOf[V]) first() (lease, V, bool) {
	for len(q.order) > 0 {
		if value, ok := q.values[q.order[0]]; ok {
			return q.order[0], value, true
		}
		q.order = q.order[1:]
	}
	var none V
	return lease{}, none, false
}
