package stream

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// The protocol's limit for one settle.
	settleItemsMax = 10_000
	// Results and errors of one settle; far below what a server takes in a message, and one always fits.
	settleBytesMax = 2 << 20
	// Settles sent and not confirmed, above which new ones gather.
	unconfirmedMax = 16
)

// Item is the settle of one job that failed or is given back.
type Item interface {
	proto.Message
	GetId() uint64
	GetDelivery() uint64
}

// SettleReport is the server's reply to a settled lease that was not simply done, or whose job is
// dead now.
type SettleReport struct {
	ID, Delivery uint64
	IsAck        bool
	Outcome      joblinev1.SettleOutcome
	IsDead       bool
	Error        string
}

// settles are those of one session that the server has not confirmed. Each keeps its number until
// then. After a broken connection all of them are sent again, which is safe because a lease is
// settled once.
type settles struct {
	ackIDs, ackDeliveries []uint64
	items                 []Item
	seq                   uint64
	unconfirmed           map[uint64]*joblinev1.StreamSettle
	unconfirmedJobs       int
	mayRepeat             bool // a job may be among those that wait twice, under two leases
	fences                []func()
	fenced                map[uint64][]func()
}

func (s *settles) ack(id, delivery uint64, result []byte) {
	if len(result) > 0 {
		s.items = append(s.items, &joblinev1.AckItem{Id: id, Delivery: delivery, Result: result})
		return
	}
	s.ackIDs = append(s.ackIDs, id)
	s.ackDeliveries = append(s.ackDeliveries, delivery)
}

func (s *settles) add(item Item) { s.items = append(s.items, item) }

// fence calls passed when the server has confirmed the next settle, which may be empty.
func (s *settles) fence(passed func()) { s.fences = append(s.fences, passed) }

func (s *settles) hasWaiting() bool { return len(s.ackIDs)+len(s.items)+len(s.fences) > 0 }

// jobs returns how many jobs are settled and not confirmed, sent or not.
func (s *settles) jobs() int { return len(s.ackIDs) + len(s.items) + s.unconfirmedJobs }

func jobsOf(settle *joblinev1.StreamSettle) int {
	return len(settle.GetAckIds()) + len(settle.GetAcks()) + len(settle.GetFails()) + len(settle.GetReleases())
}

// take returns the next settle to send, nil if none is due. Call until it is nil.
func (s *settles) take() *joblinev1.StreamSettle {
	if len(s.unconfirmed) >= unconfirmedMax || !s.hasWaiting() {
		return nil
	}
	s.seq++
	settle := &joblinev1.StreamSettle{Seq: s.seq}
	count := min(len(s.ackIDs), settleItemsMax)
	settle.AckIds, s.ackIDs = split(s.ackIDs, count)
	settle.AckDeliveries, s.ackDeliveries = split(s.ackDeliveries, count)
	s.takeItems(settle, settleItemsMax-count)
	if s.mayRepeat {
		keepNewest(settle)
	}
	if s.unconfirmed == nil {
		s.unconfirmed = map[uint64]*joblinev1.StreamSettle{}
	}
	s.unconfirmed[s.seq] = settle
	s.unconfirmedJobs += jobsOf(settle)
	if len(s.fences) > 0 {
		if s.fenced == nil {
			s.fenced = map[uint64][]func(){}
		}
		s.fenced[s.seq], s.fences = s.fences, nil
	}
	return settle
}

func split[T any](values []T, count int) (taken, rest []T) {
	if count == len(values) {
		return values, nil
	}
	return values[:count:count], values[count:]
}

func (s *settles) takeItems(settle *joblinev1.StreamSettle, room int) {
	total, count := 0, 0
	for _, item := range s.items[:min(room, len(s.items))] {
		total += proto.Size(item)
		if total > settleBytesMax && count > 0 {
			break
		}
		count++
		switch one := item.(type) {
		case *joblinev1.AckItem:
			settle.Acks = append(settle.Acks, one)
		case *joblinev1.FailItem:
			settle.Fails = append(settle.Fails, one)
		case *joblinev1.ReleaseItem:
			settle.Releases = append(settle.Releases, one)
		}
	}
	_, s.items = split(s.items, count)
}

// resend returns all unconfirmed settles, oldest first, for a new stream.
func (s *settles) resend() []*joblinev1.StreamSettle {
	var all []*joblinev1.StreamSettle
	for _, seq := range slices.Sorted(maps.Keys(s.unconfirmed)) {
		all = append(all, s.unconfirmed[seq])
	}
	return all
}

// leases returns id → delivery of all leases that were settled and not confirmed, sent or not.
func (s *settles) leases() map[uint64]uint64 {
	found := map[uint64]uint64{}
	for i, id := range s.ackIDs {
		found[id] = s.ackDeliveries[i]
	}
	for _, item := range s.items {
		found[item.GetId()] = item.GetDelivery()
	}
	for _, settle := range s.resend() {
		eachLease(settle, func(id, delivery uint64) { found[id] = delivery })
	}
	return found
}

// confirm forgets a confirmed settle; it returns a report for each lease that was not done or whose
// job died.
func (s *settles) confirm(confirm *joblinev1.StreamConfirm) []SettleReport {
	settle, ok := s.unconfirmed[confirm.GetSeq()]
	if !ok {
		return nil // a settle that was sent twice may be confirmed twice
	}
	delete(s.unconfirmed, confirm.GetSeq())
	s.unconfirmedJobs -= jobsOf(settle)
	for _, passed := range s.fenced[confirm.GetSeq()] {
		passed()
	}
	delete(s.fenced, confirm.GetSeq())
	var reports []SettleReport
	// Once for each lease, however often a server says it.
	outcomes := map[int]joblinev1.SettleOutcome{}
	for _, one := range confirm.GetExceptions() {
		outcomes[int(one.GetIndex())] = one.GetOutcome()
	}
	for _, index := range slices.Sorted(maps.Keys(outcomes)) {
		if report, ok := reportOf(settle, index); ok {
			report.Outcome = outcomes[index]
			reports = append(reports, report)
		}
	}
	for _, index := range slices.Compact(slices.Sorted(slices.Values(confirm.GetDead()))) {
		if report, ok := reportOf(settle, int(index)); ok {
			report.Outcome, report.IsDead = joblinev1.SettleOutcome_SETTLE_OUTCOME_DONE, true
			reports = append(reports, report)
		}
	}
	return reports
}

func eachLease(settle *joblinev1.StreamSettle, do func(id, delivery uint64)) {
	for i, id := range settle.GetAckIds() {
		do(id, settle.GetAckDeliveries()[i])
	}
	for _, item := range settle.GetAcks() {
		do(item.GetId(), item.GetDelivery())
	}
	for _, item := range settle.GetFails() {
		do(item.GetId(), item.GetDelivery())
	}
	for _, item := range settle.GetReleases() {
		do(item.GetId(), item.GetDelivery())
	}
}

// keepNewest drops all but the newest lease of each job: one that was lost, leased again and settled
// again while nothing could be sent is there twice, which the server refuses.
func keepNewest(settle *joblinev1.StreamSettle) {
	newest, count := map[uint64]uint64{}, 0
	eachLease(settle, func(id, delivery uint64) {
		newest[id] = max(newest[id], delivery)
		count++
	})
	if len(newest) == count {
		return
	}
	isOld := func(item Item) bool { return newest[item.GetId()] != item.GetDelivery() }
	ids, deliveries := settle.AckIds, settle.AckDeliveries
	settle.AckIds, settle.AckDeliveries = nil, nil
	for i, id := range ids {
		if newest[id] == deliveries[i] {
			settle.AckIds = append(settle.AckIds, id)
			settle.AckDeliveries = append(settle.AckDeliveries, deliveries[i])
		}
	}
	settle.Acks = slices.DeleteFunc(settle.Acks, func(i *joblinev1.AckItem) bool { return isOld(i) })
	settle.Fails = slices.DeleteFunc(settle.Fails, func(i *joblinev1.FailItem) bool { return isOld(i) })
	settle.Releases = slices.DeleteFunc(settle.Releases, func(i *joblinev1.ReleaseItem) bool { return isOld(i) })
}

// reportOf returns the lease at an index into a settle: packed ids first, then each kind of item.
func reportOf(settle *joblinev1.StreamSettle, index int) (SettleReport, bool) {
	if index < 0 {
		return SettleReport{}, false
	}
	if index < len(settle.AckIds) {
		return SettleReport{ID: settle.AckIds[index], Delivery: settle.AckDeliveries[index], IsAck: true}, true
	}
	index -= len(settle.AckIds)
	if index < len(settle.Acks) {
		return SettleReport{ID: settle.Acks[index].Id, Delivery: settle.Acks[index].Delivery, IsAck: true}, true
	}
	index -= len(settle.Acks)
	if index < len(settle.Fails) {
		item := settle.Fails[index]
		why := item.GetError().GetType()
		if message := item.GetError().GetMessage(); message != "" {
			why += ": " + message
		}
		return SettleReport{ID: item.Id, Delivery: item.Delivery, Error: why}, true
	}
	index -= len(settle.Fails)
	if index < len(settle.Releases) {
		return SettleReport{ID: settle.Releases[index].Id, Delivery: settle.Releases[index].Delivery}, true
	}
	return SettleReport{}, false
}
