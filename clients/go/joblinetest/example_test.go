package joblinetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinetest"
)

// The program under test.

type Mail struct {
	To string `json:"to"`
}

func handlers(worker *jobline.Worker) { jobline.Handle(worker, "mail", "welcome", welcome) }

func welcome(_ context.Context, job *jobline.Job[Mail]) (string, error) {
	if !strings.Contains(job.Payload.To, "@") {
		return "", jobline.Dead("no address")
	}
	if strings.HasPrefix(job.Payload.To, "busy") && job.Attempt == 1 {
		return "", errors.New("try later")
	}
	return "sent to " + job.Payload.To, nil
}

func signUp(ctx context.Context, client *jobline.Client, address string) (jobline.Pushed, error) {
	return client.Push(ctx, "mail", Mail{address}, &jobline.PushOptions{
		Name: "welcome", JobKey: "welcome-" + address,
		Backoff: &jobline.Backoff{Base: time.Minute, Jitter: jobline.None},
	})
}

// Its tests.

// TestADay covers a retry after its backoff, a schedule, a debounced push and a lost lease.
func TestADay(t *testing.T) {
	ctx, halfPastEight := t.Context(), time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	kit := joblinetest.New(t, &joblinetest.Options{Start: halfPastEight})

	// A retry, a minute after the first attempt has failed.
	busy, err := signUp(ctx, kit.Client, "busy@b.c")
	if err != nil {
		t.Fatal(err)
	}
	kit.Drain(handlers)
	kit.AssertPushed("welcome", joblinetest.In(jobline.StateScheduled), joblinetest.PayloadHas(Mail{"busy@b.c"}))
	kit.Advance(time.Minute)
	kit.Drain(handlers)
	var said string
	if kit.Job(busy.ID).ResultInto(&said); said != "sent to busy@b.c" {
		t.Errorf("it said %q", said)
	}

	// A schedule, every day at nine.
	_, err = kit.Client.UpsertSchedule(ctx, "daily", jobline.Schedule{
		Queue: "reports", Cron: "0 9 * * *", Options: jobline.PushOptions{Name: "report"},
	})
	if err != nil {
		t.Fatal(err)
	}
	kit.AdvanceTo(halfPastEight.Add(30*time.Minute - time.Second))
	kit.RefutePushed("report")
	kit.Advance(time.Second)
	kit.AssertPushed("report", joblinetest.Times(1))

	// Two pushes within the delay are one job, with the last payload.
	for _, text := range []string{"a", "ab"} {
		_, err := kit.Client.Push(ctx, "index", text, &jobline.PushOptions{
			Name: "search", UniqueKey: "u", UniqueMode: jobline.UniqueDebounce, Delay: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		kit.Advance(20 * time.Second)
	}
	kit.Advance(10 * time.Second)
	kit.AssertPushed("search", joblinetest.Times(1), joblinetest.In(jobline.StateReady), joblinetest.Payload("ab"))

	// A worker takes a job and is never heard of again.
	if _, err := kit.Client.Push(ctx, "images", nil, &jobline.PushOptions{Lease: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	leased := kit.Abandon("images")
	kit.Advance(31 * time.Second)
	again := kit.WaitFor(1, joblinetest.Queue("images"), joblinetest.In(jobline.StateReady))[0]
	if again.GetId() != leased.GetId() || again.GetStalls() != 1 {
		t.Errorf("got %v", again)
	}
}

// One handler alone, at its second attempt.
func TestWelcomeIsSentAtTheSecondAttempt(t *testing.T) {
	kit := joblinetest.New(t, nil)
	var said string
	joblinetest.WorkOne(kit, welcome, Mail{"busy@b.c"}, &joblinetest.OneOptions{Attempt: 2}).ResultInto(&said)
	if said != "sent to busy@b.c" {
		t.Errorf("it said %q", said)
	}
	if job := joblinetest.WorkOne(kit, welcome, Mail{"nobody"}, nil); job.GetState() != jobline.StateDead {
		t.Errorf("it is %s", job.GetState())
	}
}
