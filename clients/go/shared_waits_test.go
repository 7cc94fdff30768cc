package jobline_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// delayed pushes jobs that nothing runs, and returns their ids.
func delayed(t *testing.T, client *jobline.Client, queue string, count int) []uint64 {
	t.Helper()
	var ids []uint64
	for len(ids) < count {
		lot := must[jobline.Lot](t)(client.PushPayloads(newContext(t), queue, make([][]byte, min(count-len(ids), 10_000)), &jobline.PushManyOptions{PushOptions: jobline.PushOptions{Delay: time.Hour}}))
		for i := range lot.Count {
			ids = append(ids, lot.FirstID+uint64(i))
		}
	}
	return ids
}

// cancelAll cancels the jobs of a queue, as soon as there is a server.
func cancelAll(t *testing.T, client *jobline.Client, queue string) {
	t.Helper()
	admin := joblinev1.NewJobAdminServiceClient(client.Conn())
	jobs := &joblinev1.JobSelection{Filter: &joblinev1.JobFilter{Queue: queue}}
	eventually(t, "all are cancelled", func() bool {
		_, err := admin.CancelJobs(newContext(t), &joblinev1.CancelJobsRequest{Jobs: jobs})
		return err == nil
	})
}

// TestManyWaitsShareCalls: twenty thousand are few calls, a push passes beside them, each has its own time, and those
// that end early or twice disturb nobody.
func TestManyWaitsShareCalls(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	ids := delayed(t, client, queue, 20_000)
	var all sync.WaitGroup
	var cancelled, late, withdrawn atomic.Int64
	withdrawing, withdraw := context.WithCancel(ctx)
	for i, id := range ids {
		all.Go(func() {
			ctx := ctx
			switch i % 10 {
			case 0:
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i%1_000)*time.Millisecond)
				defer cancel()
			case 1:
				ctx = withdrawing
			}
			end, err := client.WaitOne(ctx, id)
			switch {
			case errors.Is(err, jobline.ErrWaitTimeout) && errors.Is(err, context.DeadlineExceeded):
				late.Add(1)
			case errors.Is(err, jobline.ErrWaitTimeout) && errors.Is(err, context.Canceled):
				withdrawn.Add(1)
			case err == nil && errors.Is(end.Err(), jobline.ErrJobCancelled) && end.ID == id:
				cancelled.Add(1)
			default:
				t.Errorf("%d: %v, %v", id, end, err)
			}
		})
	}
	eventually(t, "those that have little time are over, and the others share calls", func() bool {
		calls, jobs := jobline.WaitCalls(client)
		return late.Load() == 2_000 && jobs == 18_000 && calls <= 10
	})
	began := time.Now()
	must[jobline.Pushed](t)(client.Push(ctx, queue, 1, nil))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a push took %v", took)
	}
	withdraw()
	eventually(t, "some are withdrawn", func() bool { return withdrawn.Load() == 2_000 })
	cancelAll(t, client, queue)
	all.Wait()
	if cancelled.Load() != 16_000 {
		t.Errorf("%d were cancelled", cancelled.Load())
	}
	if calls, jobs := jobline.WaitCalls(client); jobs != 0 {
		t.Errorf("%d calls for %d jobs are left", calls, jobs)
	}
}

// TestWaitsGoOnAfterARestart of the server, which was killed; two of one job both end.
func TestWaitsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	server := testserver.New(t)
	client := clientOf(t, server.Address, &jobline.ClientOptions{Logger: quiet})
	ids := delayed(t, client, "q", 200)
	var all sync.WaitGroup
	for _, id := range slices.Concat(ids, ids[:50]) {
		all.Go(func() {
			if end, err := client.WaitOne(newContext(t), id); err != nil || !errors.Is(end.Err(), jobline.ErrJobCancelled) {
				t.Errorf("%d: %v, %v", id, end, err)
			}
		})
	}
	eventually(t, "all wait", func() bool { _, jobs := jobline.WaitCalls(client); return jobs == 200 })
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	cancelAll(t, client, "q")
	all.Wait()
}

// TestRefusalOfOneJobIsNoneOfTheOthers that share its call.
func TestRefusalOfOneJobIsNoneOfTheOthers(t *testing.T) {
	t.Parallel()
	f, client := startFake(t, stored, nil)
	var isOpen atomic.Bool
	f.wait = func(request *joblinev1.WaitRequest, stream joblinev1.JobService_WaitServer) error {
		for !isOpen.Load() {
			select {
			case <-stream.Context().Done():
				return stream.Context().Err()
			case <-time.After(time.Millisecond):
			}
		}
		if slices.Contains(request.GetIds(), 113) {
			return status.Error(codes.DataLoss, "job 113 is damaged")
		}
		for _, id := range request.GetIds() {
			if err := stream.Send(&joblinev1.WaitResponse{Id: id, State: jobline.StateCompleted}); err != nil {
				return err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for id := uint64(1); id <= 400; id++ {
		all.Go(func() {
			end, err := client.WaitOne(newContext(t), id)
			if errors.Is(err, jobline.ErrDataLoss) != (id == 113) || (id != 113 && end.ID != id) {
				t.Errorf("%d: %v, %v", id, end, err)
			}
		})
	}
	eventually(t, "they share calls", func() bool {
		calls, jobs := jobline.WaitCalls(client)
		return jobs == 400 && calls <= 8
	})
	isOpen.Store(true)
	all.Wait()
}

func TestClosedClientEndsItsWaits(t *testing.T) {
	t.Parallel()
	f, client := startFake(t, stored, nil)
	asked := make(chan struct{}, 10)
	f.wait = func(_ *joblinev1.WaitRequest, stream joblinev1.JobService_WaitServer) error {
		asked <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.WaitOne(newContext(t), 7)
		ended <- err
	}()
	<-asked
	_ = client.Close()
	if err := <-ended; !errors.Is(err, jobline.ErrClosed) {
		t.Error(err)
	}
}
