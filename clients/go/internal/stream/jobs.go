package stream

import (
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Job is a leased job, as a frame brought it: alone, or one of a run that shares all else.
type Job struct {
	ID, Delivery uint64
	Payload      []byte
	Message      *joblinev1.LeasedJob // nil for a job of a run
	Run          *joblinev1.LeasedRun // nil for a job by itself
	Index        int                  // in the run
	ReceivedAt   time.Time

	state atomic.Int32
}

// States of a job: one that waits may be begun or released, and only one of the two.
const (
	waiting int32 = iota
	begun
	gone // its lease is settled or lost
)

// Begin begins a job; it returns false if its lease was settled or lost while it waited. Safe for use
// by many goroutines.
func (j *Job) Begin() bool { return j.state.CompareAndSwap(waiting, begun) }

// HasBegun reports whether the job was begun, and is still held.
func (j *Job) HasBegun() bool { return j.state.Load() == begun }

// IsHeld reports whether the lease is held and not settled. Safe for use by many goroutines.
func (j *Job) IsHeld() bool { return j.state.Load() != gone }

// Options returns what the job was pushed with; the jobs of a run share them.
func (j *Job) Options() *joblinev1.JobOptions {
	if j.Run != nil {
		return j.Run.GetOptions()
	}
	return j.Message.GetOptions()
}

// IsOnce reports whether the job may run only once.
func (j *Job) IsOnce() bool {
	return j.Options().GetDelivery() == joblinev1.DeliveryMode_DELIVERY_MODE_ONCE
}

func (j *Job) lease() lease { return lease{j.ID, j.Delivery} }

// LostLease is a lease that the worker should stop working on. With CANCELLED it is still held, and
// must be settled.
type LostLease struct {
	Job    *Job
	Reason joblinev1.RevokeReason
}

// Received is what one frame brought.
type Received struct {
	IsOpened, IsResumed bool
	Jobs                []*Job
	Lost                []LostLease
	Reports             []SettleReport
	Goaway              *joblinev1.StreamGoaway
	Unhandled           []*joblinev1.UnhandledName
	// IsTooMany: there were more jobs than the window allows. They are not among Jobs: end the stream, and the next
	// one gives them back.
	IsTooMany bool
	// Wrong is what no server of this protocol sends; "" for none. Nothing of the frame counts: end the stream.
	Wrong string
}

// jobsOfRun returns the jobs of a run, and whether these are all: of an empty payload, which takes two bytes on the
// wire, more are not made than may be held.
func jobsOfRun(run *joblinev1.LeasedRun, now time.Time, most int) (jobs []*Job, isWhole bool) {
	payloads := run.GetPayloads()
	isWhole = len(payloads) <= most
	payloads = payloads[:min(len(payloads), most)]
	slab := make([]Job, len(payloads))
	jobs = make([]*Job, len(slab))
	for i, payload := range payloads {
		job := &slab[i]
		job.ID, job.Delivery = run.GetFirstId()+uint64(i), run.GetDelivery()
		job.Payload, job.Run, job.Index, job.ReceivedAt = payload, run, i, now
		jobs[i] = job
	}
	return jobs, isWhole
}

// Interrupted returns the release of a lease that this worker does not run to its end.
func Interrupted(id, delivery uint64) *joblinev1.ReleaseItem {
	return &joblinev1.ReleaseItem{Id: id, Delivery: delivery, Why: joblinev1.ReleaseReason_RELEASE_REASON_INTERRUPTED}
}
