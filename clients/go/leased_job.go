package jobline

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	checkpointBytesMax = 64 << 10
	pieceBytesMax      = 64 << 10
	messageBytesCut    = 4 << 10
)

// Job is a job in the hands of its handler, with its payload as a type.
type Job[T any] struct {
	*LeasedJob
	// Payload is read from JSON, or the bytes as they are for []byte.
	Payload T
}

// LeasedJob is one delivery of one job. Its methods are safe for use by many goroutines; reports
// return at once, are sent with the next frame, always before the job's outcome, and are dropped when
// the lease is lost.
type LeasedJob struct {
	// ID of the job. Delivery is the lease's counter: it only grows, so it serves as a fencing token.
	ID, Delivery uint64
	// Queue and Name are what the handler was found by.
	Queue, Name string
	// Attempt is the number of this attempt, from 1; a job that was released or lost has the same again.
	Attempt int
	// Reason says why the job is here: for the first time, or again.
	Reason LeaseReason
	// Group is the job's group, "" without one. ContinuesGroup: this worker had the last job of a
	// sticky group, so what it keeps of it in memory still holds.
	Group          string
	ContinuesGroup bool
	// JobKey is its idempotency key, or "".
	JobKey string
	// Raw is the payload as it was pushed, opened if it was sealed; ContentType what that is.
	Raw         []byte
	ContentType string
	// Lease is how long the worker may stay silent. Leases are kept alive by the worker.
	Lease time.Duration

	job        *stream.Job
	run        *workerRun
	cancel     context.CancelCauseFunc
	stopReason atomic.Pointer[StopReason]

	keyID string // of the frame of its payload; "" if that was not encrypted

	mu         sync.Mutex
	checkpoint []byte
	finished   [][]byte
	spawned    int
}

func newLeasedJob(run *workerRun, job *stream.Job) *LeasedJob {
	options := job.Options()
	leased := &LeasedJob{
		ID: job.ID, Delivery: job.Delivery, Name: options.GetName(), Attempt: 1,
		Reason: joblinev1.LeaseReason_LEASE_REASON_FIRST, Raw: job.Payload,
		ContentType: options.GetContentType(), job: job, run: run,
	}
	if r := job.Run; r != nil {
		leased.Queue, leased.Lease = r.GetQueue(), time.Duration(r.GetLeaseMs())*time.Millisecond
		if job.Index < len(r.GetJobKeys()) {
			leased.JobKey = r.GetJobKeys()[job.Index]
		}
		return leased
	}
	m := job.Message
	leased.Queue, leased.Lease = m.GetQueue(), time.Duration(m.GetLeaseMs())*time.Millisecond
	leased.Attempt, leased.Reason = int(m.GetAttempt()), m.GetReason()
	leased.Group, leased.ContinuesGroup = m.GetGroup(), m.GetContinuesGroup()
	leased.JobKey, leased.checkpoint, leased.finished = m.GetJobKey(), m.GetCheckpoint(), m.GetPhaseResults()
	return leased
}

// Headers returns the headers that the job was pushed with.
func (j *LeasedJob) Headers() map[string]string {
	headers := maps.Clone(j.job.Options().GetHeaders())
	if headers == nil {
		headers = map[string]string{}
	}
	for _, column := range j.job.Run.GetHeaderColumns() {
		if value := column.GetValues()[j.job.Index]; value != "" {
			headers[column.GetKey()] = value
		}
	}
	return headers
}

// PushedAt returns when the job was pushed; zero for a LeasedJob that no server handed out.
func (j *LeasedJob) PushedAt() time.Time {
	if j.job == nil {
		return time.Time{}
	}
	if j.job.Run != nil {
		return j.job.Run.GetPushedAt().AsTime()
	}
	return j.job.Message.GetPushedAt().AsTime()
}

// Options returns what the job was pushed with. They are shared: do not change them.
func (j *LeasedJob) Options() *joblinev1.JobOptions { return j.job.Options() }

// String names the job in log lines.
func (j *LeasedJob) String() string {
	if j.Name == "" {
		return fmt.Sprintf("job %d (%s)", j.ID, j.Queue)
	}
	return fmt.Sprintf("job %d (%s/%s)", j.ID, j.Queue, j.Name)
}

// stop asks the handler to stop.
func (j *LeasedJob) stop(reason StopReason) {
	if j.stopReason.CompareAndSwap(nil, &reason) {
		j.cancel(reason)
	}
}

// Progress reports how far the job is, 0 … 100 (of the current phase, if it has phases), and what it
// is doing, in one sentence that is cut at 4 KiB; "" leaves that as it is.
func (j *LeasedJob) Progress(percent float64, message string) error {
	if !(percent >= 0 && percent <= 100) {
		return refuse("progress", "is 0 … 100, not %g", percent)
	}
	report := stream.Report{Progress: &percent}
	if message != "" {
		message = cut(message, messageBytesCut)
		report.Message = &message
	}
	j.run.session.report(j.job, report)
	return nil
}

// Log writes a line to the job's log, which keeps the last 1,000 lines and 1 MiB. A line is cut at
// 16 KiB.
func (j *LeasedJob) Log(level LogLevel, text string) {
	j.run.session.writeLine(j.job, stream.Line{AtMillis: time.Now().UnixMilli(), Level: level, Text: text})
}

// Partial sends a piece of the result, bytes or any value as JSON, 1 byte … 64 KiB, to those who wait
// with Client.Partials.
func (j *LeasedJob) Partial(value any) error {
	data, err := j.encode(value)
	if err != nil {
		return err
	}
	if len(data) == 0 || len(data) > pieceBytesMax {
		return refuse("partial", "a piece has 1 byte … 64 KiB, not %d bytes", len(data))
	}
	j.run.session.piece(j.job, data)
	return nil
}

// SaveCheckpoint saves bytes, or any value as JSON, ≤ 64 KiB, for a later attempt.
func (j *LeasedJob) SaveCheckpoint(value any) error {
	data, err := j.encode(value)
	if err != nil {
		return err
	}
	if len(data) > checkpointBytesMax {
		return refuse("checkpoint", "is at most 64 KiB, not %d bytes", len(data))
	}
	if data == nil {
		data = []byte{}
	}
	j.mu.Lock()
	j.checkpoint = data
	j.mu.Unlock()
	j.run.session.report(j.job, stream.Report{Checkpoint: data})
	return nil
}

// Checkpoint reads what this attempt, or an earlier one, has saved into a value, as JSON or, for a
// *[]byte, as it is. It returns false, and leaves the value alone, if nothing was.
func (j *LeasedJob) Checkpoint(into any) (bool, error) {
	j.mu.Lock()
	data := j.checkpoint
	j.mu.Unlock()
	if len(data) == 0 {
		return false, nil
	}
	return true, j.decode(data, into)
}

// Children returns the jobs that this one waited for, with their results, in their order.
func (j *LeasedJob) Children(ctx context.Context) ([]Child, error) {
	client, err := j.run.flows.client()
	if err != nil {
		return nil, err
	}
	return client.Children(ctx, j.ID)
}

// Spawn pushes another job, which this one does not wait for. Unless the options say otherwise its
// JobKey counts the jobs that this one spawned, so that a later attempt which spawns the same jobs in
// the same order does not push them twice. Options may be nil.
func (j *LeasedJob) Spawn(ctx context.Context, queue string, payload any, options *PushOptions) (Pushed, error) {
	client, err := j.run.flows.client()
	if err != nil {
		return Pushed{}, err
	}
	own := PushOptions{}
	if options != nil {
		own = *options
	}
	j.mu.Lock()
	j.spawned++
	if own.JobKey == "" {
		own.JobKey = fmt.Sprintf("spawned:%d:%d", j.ID, j.spawned)
	}
	j.mu.Unlock()
	return client.Push(ctx, queue, payload, &own)
}

// cut returns text of at most so many bytes that a message can hold.
func cut(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}
