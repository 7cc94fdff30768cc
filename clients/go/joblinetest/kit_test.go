package joblinetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinetest"
)

func TestMain(m *testing.M) {
	if command, err := testserver.Command(); err == nil {
		_ = os.Setenv("JOBLINE_COMMAND", command)
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "tests of the kit are left out:", testserver.ErrNoServer)
}

// failing is a test that a test looks at: it keeps what it fails with.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, arguments ...any) {
	f.said = fmt.Sprintf(format, arguments...)
	panic(f)
}

// said returns what a test fails with; "" if it does not.
func said(t *testing.T, do func()) (words string) {
	t.Helper()
	defer func() {
		switch got := recover().(type) {
		case *failing:
			words = got.said
		case nil:
		default:
			panic(got)
		}
	}()
	do()
	return ""
}

func TestAssertionsShowWhatThereIs(t *testing.T) {
	f := &failing{TB: t}
	kit := joblinetest.New(f, nil)
	push := func(queue string, payload any, name string) {
		if _, err := kit.Client.Push(t.Context(), queue, payload, &jobline.PushOptions{
			Name: name, Tags: []string{"new"}, Headers: map[string]string{"a": "1"}, Group: "g",
		}); err != nil {
			t.Fatal(err)
		}
	}
	push("mail", map[string]any{"to": "a@b.c", "parts": []int{1, 2}, "id": 9007199254740993}, "welcome")
	push("mail", []byte("plain bytes"), "raw")
	kit.AssertPushed("welcome", joblinetest.Queue("mail"), joblinetest.Tags("new"), joblinetest.Group("g"),
		joblinetest.Header("a", "1"), joblinetest.In(jobline.StateReady), joblinetest.Times(1),
		joblinetest.PayloadHas(map[string]any{"parts": []int{2}, "id": 9007199254740993}))
	kit.AssertPushed("raw", joblinetest.PayloadHas([]byte("bytes")), joblinetest.Payload([]byte("plain bytes")))
	kit.RefutePushed("welcome", joblinetest.PayloadHas(map[string]any{"id": 9007199254740992}))
	kit.RefutePushed("", joblinetest.Header("a", "2"))
	if got := len(kit.Pushed("")); got != 2 {
		t.Errorf("%d jobs", got)
	}
	joblinetest.WorkOne(kit, fails, 1, &joblinetest.OneOptions{PushOptions: jobline.PushOptions{MaxAttempts: 1, Name: "fails"}})
	for want, do := range map[string]func(){
		`fails DEAD 1 error: "no luck"`:         func() { kit.AssertPushed("bye") },
		`no job matches: name "bye"`:            func() { kit.AssertPushed("bye") },
		"jobs match, not 7: any":                func() { kit.AssertPushed("", joblinetest.Times(7)) },
		`mail/welcome READY {"id":900719925474`: func() { kit.AssertPushed("bye") },
		`jobs match: queue "mail"`:              func() { kit.RefutePushed("", joblinetest.Queue("mail")) },
		"no JSON for this chan int":             func() { kit.AssertPushed("", joblinetest.Payload(make(chan int))) },
		`no job of queue "other" is ready`:      func() { kit.Abandon("other") },
		"the clock goes only forward":           func() { kit.AdvanceTo(kit.Now().Add(-time.Second)) },
		"attempt 2 cannot be made: the job is": func() {
			joblinetest.WorkOne(kit, fails, 1, &joblinetest.OneOptions{PushOptions: jobline.PushOptions{MaxAttempts: 1}, Attempt: 2})
		},
		"WaitFor does not know payloads": func() { kit.WaitFor(1, joblinetest.Payload(1)) },
		"has a kit already":              func() { joblinetest.New(f, nil) },
	} {
		if got := said(t, do); !strings.Contains(got, want) {
			t.Errorf("it said %q, not %q", got, want)
		}
	}
}

func fails(context.Context, *jobline.Job[int]) (int, error) { return 0, errors.New("no luck") }

func TestWaitsSayWhatIsLeft(t *testing.T) {
	f := &failing{TB: t}
	kit := joblinetest.New(f, &joblinetest.Options{Timeout: 20 * time.Millisecond})
	if _, err := kit.Client.Push(t.Context(), "mail", 1, nil); err != nil {
		t.Fatal(err)
	}
	for want, do := range map[string]func(){
		"Drain: ":   func() { kit.Drain() },
		"WaitFor: ": func() { kit.WaitFor(2, joblinetest.In(jobline.StateCompleted)) },
	} {
		if got := said(t, do); !strings.Contains(got, want) || !strings.Contains(got, "READY") {
			t.Errorf("it said %q", got)
		}
	}
}

func TestMissingCommandIsNamedWithWhatToInstall(t *testing.T) {
	for _, command := range []string{"/no/such/jobline", "false"} {
		t.Run("", func(t *testing.T) {
			got := said(t, func() { joblinetest.New(&failing{TB: t}, &joblinetest.Options{Command: command}) })
			if !strings.Contains(got, "pip install './clients/python[cli]' '.[native]'") || !strings.Contains(got, command) {
				t.Errorf("it said %q", got)
			}
		})
	}
}

func TestEachTestHasAnEmptyServerAndTheEnvironment(t *testing.T) {
	before := os.Getenv("JOBLINE_SERVER")
	for range 2 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			kit := joblinetest.New(t, &joblinetest.Options{Start: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)})
			kit.RefutePushed("")
			client, err := jobline.New("", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Push(t.Context(), "q", 1, nil); err != nil {
				t.Fatal(err)
			}
			kit.AssertPushed("", joblinetest.Queue("q"), joblinetest.Payload(1))
			if got := kit.Now(); !got.Equal(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)) {
				t.Errorf("it is %s", got)
			}
		})
	}
	t.Cleanup(func() {
		if got := os.Getenv("JOBLINE_SERVER"); got != before {
			t.Errorf("JOBLINE_SERVER is still %q", got)
		}
	})
}

func TestServerThatATestHasKilledIsNotHandedToTheNext(t *testing.T) {
	for range 3 {
		t.Run("", func(t *testing.T) {
			kit := joblinetest.New(t, nil)
			kit.RefutePushed("")
			joblinetest.KillServer(kit)
		})
	}
}

func TestResetThatIsRefusedIsNotTriedWithAnotherServer(t *testing.T) {
	f := &failing{TB: t}
	start := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := said(t, func() { joblinetest.New(f, &joblinetest.Options{Start: start}) }); !strings.Contains(got, "Reset: ") {
		t.Errorf("it said %q", got)
	}
}

func TestWorkOneGoesOnFromAttemptAndCheckpoint(t *testing.T) {
	kit := joblinetest.New(t, nil)
	upto := func(_ context.Context, job *jobline.Job[int]) ([]int, error) {
		at := 0
		if _, err := job.Checkpoint(&at); err != nil {
			return nil, err
		}
		return []int{at, job.Payload, job.Attempt}, nil
	}
	for _, attempt := range []int{1, 3} {
		job := joblinetest.WorkOne(kit, upto, 5, &joblinetest.OneOptions{Attempt: attempt, Checkpoint: 3})
		var got []int
		job.ResultInto(&got)
		if fmt.Sprint(got) != fmt.Sprint([]int{3, 5, attempt}) {
			t.Errorf("got %v", got)
		}
	}
	failed := joblinetest.WorkOne(kit, fails, 1, &joblinetest.OneOptions{PushOptions: jobline.PushOptions{
		Delay: time.Hour, Backoff: &jobline.Backoff{Base: time.Minute, Jitter: jobline.None},
	}})
	if pause := failed.GetRunAt().AsTime().Sub(kit.Now()); failed.GetState() != jobline.StateScheduled || pause != time.Minute {
		t.Errorf("it is %s, and runs again in %s", failed.GetState(), pause)
	}
}

func TestWorkersOfTheTestGoOnWhileTheClockIsMoved(t *testing.T) {
	kit := joblinetest.New(t, nil)
	kit.Work(nil, func(worker *jobline.Worker) { jobline.Handle(worker, "mail", "", fails) })
	options := &jobline.PushOptions{Delay: time.Hour, MaxAttempts: 2}
	if _, err := kit.Client.Push(t.Context(), "mail", 1, options); err != nil {
		t.Fatal(err)
	}
	kit.Advance(2 * time.Hour)
	for _, job := range kit.WaitFor(1, joblinetest.Queue("mail"), joblinetest.In(jobline.StateDead)) {
		if job.GetAttempts() != 2 {
			t.Errorf("%d attempts", job.GetAttempts())
		}
	}
}

func TestKitOpensWhatIsSealed(t *testing.T) {
	codec, err := jobline.NewCodec(jobline.CodecOptions{
		Keys: jobline.NewKeyMap(map[string][]byte{"k": make([]byte, 32)}, func(string) string { return "k" }),
	})
	if err != nil {
		t.Fatal(err)
	}
	kit := joblinetest.New(t, &joblinetest.Options{Client: jobline.ClientOptions{Codec: codec}})
	var said string
	joblinetest.WorkOne(kit, welcome, Mail{"a@b.c"}, nil).ResultInto(&said)
	job := kit.AssertPushed("", joblinetest.PayloadHas(Mail{"a@b.c"}))
	if said != "sent to a@b.c" || strings.Contains(string(job.GetPayload()), "a@b.c") {
		t.Errorf("it said %q of %q", said, job.GetPayload())
	}
}
