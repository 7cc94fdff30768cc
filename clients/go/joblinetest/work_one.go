package joblinetest

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// OneOptions say how WorkOne has a job handled. The zero value is its first attempt.
type OneOptions struct {
	// PushOptions are those of the job.
	jobline.PushOptions
	// Attempt that is handled, from 1 (the default); those before it have failed.
	Attempt int
	// Checkpoint is what they have left: bytes, or any value as JSON; default none.
	Checkpoint any
}

// WorkOne has one job handled once by the real server, and returns it as it is then: its state, result, error,
// run_at of its retry, checkpoint. It is in a queue of its own, so that nothing else is handled. Options
// may be nil.
func WorkOne[T, R any](k *Kit, handler func(context.Context, *jobline.Job[T]) (R, error), payload T, options *OneOptions) *Job {
	k.t.Helper()
	own := OneOptions{}
	if options != nil {
		own = *options
	}
	queue := workOneQueue()
	ctx, cancel := within(callTime)
	defer cancel()
	pushed, err := k.Client.Push(ctx, queue, payload, &own.PushOptions)
	if err != nil {
		k.fatal("WorkOne", err)
	}
	k.bring(pushed.ID, queue, &own)
	worker, stop := k.work(&jobline.WorkerOptions{Concurrency: 1, Window: 1}, []func(*jobline.Worker){
		func(worker *jobline.Worker) { jobline.Handle(worker, queue, jobline.AnyName, handler) },
	})
	_ = worker
	k.drain(queue)
	stop()
	return k.Job(pushed.ID)
}

// bring fails a job until its next attempt is the one that is wanted, and leaves a checkpoint.
func (k *Kit) bring(id uint64, queue string, own *OneOptions) {
	k.t.Helper()
	checkpoint, _, err := jobline.Encode(own.Checkpoint)
	if err != nil {
		k.t.Fatalf("joblinetest: the checkpoint: %v", err)
	}
	if k.Job(id).GetState() == jobline.StateScheduled {
		k.promote(id)
	}
	for number := 1; number < own.Attempt; number++ {
		leased := k.leaseOne(id, queue, number)
		if checkpoint != nil && number == own.Attempt-1 {
			k.save(leased, checkpoint)
		}
		k.settle(func(ctx context.Context, jobs joblinev1.JobServiceClient) error {
			_, err := jobs.Fail(ctx, &joblinev1.FailRequest{Items: []*joblinev1.FailItem{{
				Id: leased.GetId(), Delivery: leased.GetDelivery(), RetryAfter: durationpb.New(0),
				Error: &joblinev1.JobError{Type: "joblinetest", Message: "an earlier attempt"},
			}}})
			return err
		})
	}
	if checkpoint != nil && own.Attempt <= 1 {
		leased := k.leaseOne(id, queue, 1)
		k.save(leased, checkpoint)
		k.settle(func(ctx context.Context, jobs joblinev1.JobServiceClient) error {
			_, err := jobs.Release(ctx, &joblinev1.ReleaseRequest{Items: []*joblinev1.ReleaseItem{{
				Id: leased.GetId(), Delivery: leased.GetDelivery(),
			}}})
			return err
		})
	}
	k.checkReady(id, max(own.Attempt, 1))
}

func (k *Kit) leaseOne(id uint64, queue string, attempt int) *joblinev1.LeasedJob {
	k.t.Helper()
	k.checkReady(id, attempt)
	return k.lease(queue)
}

func (k *Kit) checkReady(id uint64, attempt int) {
	k.t.Helper()
	if job := k.Job(id); job.GetState() != jobline.StateReady {
		k.t.Fatalf("joblinetest: attempt %d cannot be made: the job is %s after %d attempts (MaxAttempts, or it waits for something)",
			attempt, job.GetState(), job.GetAttempts())
	}
}

func (k *Kit) promote(id uint64) {
	k.t.Helper()
	ctx, cancel := within(callTime)
	defer cancel()
	request := &joblinev1.PromoteJobsRequest{Jobs: &joblinev1.JobSelection{Ids: []uint64{id}}}
	if _, err := k.jobs.PromoteJobs(ctx, request); err != nil {
		k.fatal("PromoteJobs", err)
	}
}

func (k *Kit) save(leased *joblinev1.LeasedJob, checkpoint []byte) {
	k.t.Helper()
	k.settle(func(ctx context.Context, jobs joblinev1.JobServiceClient) error {
		_, err := jobs.Extend(ctx, &joblinev1.ExtendRequest{Items: []*joblinev1.ExtendItem{{
			Id: leased.GetId(), Delivery: leased.GetDelivery(), Checkpoint: checkpoint,
		}}})
		return err
	})
}

// settle makes a call about a lease, and has done what is due then.
func (k *Kit) settle(do func(context.Context, joblinev1.JobServiceClient) error) {
	k.t.Helper()
	ctx, cancel := within(callTime)
	defer cancel()
	if err := do(ctx, joblinev1.NewJobServiceClient(k.Client.Conn())); err != nil {
		k.fatal("WorkOne", err)
	}
	k.Advance(0)
}
