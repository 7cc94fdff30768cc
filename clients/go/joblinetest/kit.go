package joblinetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/movedclock"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// Real time that a wait for workers takes at most.
	timeoutDefault = 10 * time.Second
	// Real time beyond that, for the call.
	callTime = 30 * time.Second
	// Moving the clock over much work takes as long as the work.
	advanceTime = 10 * time.Minute

	serverVariable = "JOBLINE_SERVER"
)

// What a program under test may have in its environment for another server, by TLS: that of the kit has none.
var otherVariables = []string{"JOBLINE_TLS", "JOBLINE_TLS_CA", "JOBLINE_CLIENT_CERTIFICATE", "JOBLINE_CLIENT_KEY"}

// Options are the settings of a kit. The zero value is the defaults below.
type Options struct {
	// Command starts the server; default JOBLINE_COMMAND of the environment, else jobline in PATH.
	Command string
	// Start is the first time of the clock, 2025 … 2199; default that of the machine.
	Start time.Time
	// Timeout is how long Drain, WorkOne and WaitFor wait in real time; default 10 s, at most 10 min.
	Timeout time.Duration
	// WorkTime is how long workers may take, in real time, for what they get at one moment while the clock
	// is moved; default 1 s.
	WorkTime time.Duration
	// Client is the options of Kit.Client, and of the workers of the kit those that both have.
	Client jobline.ClientOptions
}

// Kit is an empty server for one test. Its methods fail the test if something is wrong: they are for the
// goroutine of the test.
type Kit struct {
	// Client is a client of the server, closed with the test.
	Client *jobline.Client
	// Address of the server. JOBLINE_SERVER has it too, so that jobline.New("", nil) and
	// jobline.NewWorker("", nil) of the program under test find it.
	Address string

	t       testing.TB
	options Options
	server  *server
	tests   joblinev1.TestServiceClient
	jobs    joblinev1.JobAdminServiceClient

	mu  sync.Mutex
	now time.Time
}

// turn is whose kit has the server: one test at a time.
var turn = struct {
	taken  chan struct{}
	mu     sync.Mutex
	holder string
}{taken: make(chan struct{}, 1)}

// New returns the kit of a test, with an empty server. Options may be nil. The first one of a package
// starts the server; another test's kit is waited for.
func New(t testing.TB, options *Options) *Kit {
	t.Helper()
	k := &Kit{t: t}
	if options != nil {
		k.options = *options
	}
	if k.options.Timeout == 0 {
		k.options.Timeout = timeoutDefault
	}
	if k.options.WorkTime == 0 {
		k.options.WorkTime = time.Second
	}
	take(t)
	unsetOthers(t)
	t.Cleanup(func() {
		if k.Client != nil {
			_ = k.Client.Close()
		}
	})
	err := k.open()
	if jobline.Retryable(err) {
		// An earlier test has ended the server, or stopped it.
		k.server.discard()
		_ = k.Client.Close()
		err = k.open()
	}
	if err != nil {
		k.fatal("Reset", err)
	}
	setServer(t, k.Address)
	return k
}

// open connects to the server of this process, and empties it. It returns why that was not possible.
func (k *Kit) open() error {
	k.t.Helper()
	var err error
	if k.server, err = serverOf(k.options.Command); err != nil {
		k.t.Fatalf("joblinetest: %v", err)
	}
	k.Address = k.server.address
	movedclock.Track(k.Address)
	if k.Client, err = jobline.New(k.Address, &k.options.Client); err != nil {
		k.t.Fatalf("joblinetest: %v", err)
	}
	k.tests = joblinev1.NewTestServiceClient(k.Client.Conn())
	k.jobs = joblinev1.NewJobAdminServiceClient(k.Client.Conn())
	return k.reset()
}

// take waits until no other test has the server.
func take(t testing.TB) {
	t.Helper()
	select {
	case turn.taken <- struct{}{}:
	default:
		turn.mu.Lock()
		holder := turn.holder
		turn.mu.Unlock()
		if t.Name() == holder || strings.HasPrefix(t.Name(), holder+"/") {
			t.Fatalf("joblinetest: %s has a kit already: hand it on, or make it in each subtest", holder)
		}
		turn.taken <- struct{}{}
	}
	turn.mu.Lock()
	turn.holder = t.Name()
	turn.mu.Unlock()
	t.Cleanup(func() { <-turn.taken })
}

// setServer has the programs under test find the server. Unlike testing's Setenv it is allowed in parallel
// tests: one of them has the server at a time.
func setServer(t testing.TB, address string) {
	restoreLater(t, serverVariable)
	_ = os.Setenv(serverVariable, address) // fails for names that no variable has
}

// unsetOthers has no setting for another server in the way.
func unsetOthers(t testing.TB) {
	for _, name := range otherVariables {
		restoreLater(t, name)
		_ = os.Unsetenv(name)
	}
}

func restoreLater(t testing.TB, name string) {
	before, wasSet := os.LookupEnv(name)
	t.Cleanup(func() {
		if wasSet {
			_ = os.Setenv(name, before)
		} else {
			_ = os.Unsetenv(name)
		}
	})
}

func (k *Kit) reset() error {
	request := &joblinev1.ResetRequest{}
	if !k.options.Start.IsZero() {
		request.Start = timestamppb.New(k.options.Start)
	}
	ctx, cancel := within(callTime)
	defer cancel()
	response, err := k.tests.Reset(ctx, request)
	if err != nil {
		return err
	}
	k.setNow(response.GetNow())
	return nil
}

// Now returns the time of the server, which only Advance and AdvanceTo move.
func (k *Kit) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *Kit) setNow(now *timestamppb.Timestamp) {
	k.mu.Lock()
	k.now = now.AsTime()
	k.mu.Unlock()
}

// Advance moves the clock, by 0 … 3,660 days, and returns when all that came due on the way is done,
// each thing at its moment: delays, retries, timeouts, leases, schedules, limits, webhooks, retention.
// Workers that are connected may take Options.WorkTime for what they get at one moment; they keep
// their leases. Waits of this process for jobs of the server (WaitOne, PushAndWait) whose contexts would have ended by
// then return ErrWaitTimeout, as their time has passed. It returns the time then.
func (k *Kit) Advance(by time.Duration) time.Time {
	k.t.Helper()
	return k.advance(&joblinev1.AdvanceRequest{Target: &joblinev1.AdvanceRequest_Duration{Duration: durationpb.New(by)}})
}

// AdvanceTo moves the clock to a moment that is not over, as Advance does.
func (k *Kit) AdvanceTo(moment time.Time) {
	k.t.Helper()
	k.advance(&joblinev1.AdvanceRequest{Target: &joblinev1.AdvanceRequest_Until{Until: timestamppb.New(moment)}})
}

func (k *Kit) advance(request *joblinev1.AdvanceRequest) time.Time {
	k.t.Helper()
	request.WorkTimeout = durationpb.New(k.options.WorkTime)
	ctx, cancel := within(advanceTime)
	defer cancel()
	response, err := k.tests.Advance(ctx, request)
	if err != nil {
		k.fatal("Advance", err)
	}
	before := k.Now()
	k.setNow(response.GetNow())
	movedclock.Move(k.Address, k.Now().Sub(before))
	return k.Now()
}

// fatal fails the test by an error of the server, with what it said last if it has ended.
func (k *Kit) fatal(what string, err error) {
	k.t.Helper()
	var e *jobline.Error
	switch {
	case k.server.hasEnded():
		err = fmt.Errorf("%w: %w\n%s", errEnded, err, k.server.log)
	case errors.As(err, &e) && e.Reason == "NOT_REACHED":
		err = errors.New(e.Message)
	}
	k.t.Fatalf("joblinetest: %s: %v", what, err)
}

func within(span time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), span)
}

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))
