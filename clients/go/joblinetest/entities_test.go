package joblinetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinetest"
)

// TestEntityIsMadeAnewAfterAnotherWorkerHadAJob moves a job to another worker by the clock: the one that is
// preferred is busy for longer than it is waited for.
func TestEntityIsMadeAnewAfterAnotherWorkerHadAJob(t *testing.T) {
	kit := joblinetest.New(t, &joblinetest.Options{WorkTime: 50 * time.Millisecond})
	var hold [2]chan struct{}
	ran := make(chan [2]int, 10) // which worker, and its total
	for i := range hold {
		hold[i] = make(chan struct{})
		add := func(worker *jobline.Worker) {
			type account struct{ total int }
			entities := jobline.NewEntities[account](worker, "account", nil)
			jobline.HandleEntity(entities, "deposit", func(_ context.Context, state *account, job *jobline.Job[int]) (int, error) {
				state.total += job.Payload
				ran <- [2]int{i, state.total}
				return state.total, nil
			})
			jobline.Handle(worker, [2]string{"first", "second"}[i], "", func(context.Context, *jobline.Job[int]) (int, error) {
				<-hold[i]
				return 0, nil
			})
		}
		if i == 1 {
			push(t, kit, "first", nil) // keeps the first worker busy from now on
			kit.WaitFor(1, joblinetest.Queue("first"), joblinetest.In(jobline.StateActive))
		}
		kit.Work(&jobline.WorkerOptions{Concurrency: 1, Window: 1}, add)
		if i == 0 {
			push(t, kit, "account", &jobline.PushOptions{Name: "deposit", Group: "a", Sticky: true})
			if got := <-ran; got != [2]int{0, 1} {
				t.Errorf("got %v", got)
			}
			kit.Drain()
		}
	}
	deposit := func(isWaitedFor bool) [2]int {
		push(t, kit, "account", &jobline.PushOptions{Name: "deposit", Group: "a", Sticky: true})
		if isWaitedFor {
			kit.Advance(6 * time.Second)
		}
		return <-ran
	}
	got := [][2]int{deposit(true)}
	push(t, kit, "second", nil)
	kit.WaitFor(1, joblinetest.Queue("second"), joblinetest.In(jobline.StateActive))
	close(hold[0])
	kit.WaitFor(1, joblinetest.Queue("first"), joblinetest.In(jobline.StateCompleted))
	got = append(got, deposit(true), deposit(false))
	close(hold[1])
	if want := [][2]int{{1, 1}, {0, 1}, {0, 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, not %v", got, want)
	}
}

func push(t *testing.T, kit *joblinetest.Kit, queue string, options *jobline.PushOptions) {
	t.Helper()
	if _, err := kit.Client.Push(t.Context(), queue, 1, options); err != nil {
		t.Fatal(err)
	}
}
