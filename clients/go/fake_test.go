package jobline_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// fake answers pushes as a test tells it to, where a real server does so by chance alone.
type fake struct {
	joblinev1.UnimplementedJobServiceServer
	mu       sync.Mutex
	requests []*joblinev1.PushRequest
	at       []time.Time
	answer   func(n int, request *joblinev1.PushRequest) error
	// What a call of Wait answers, and how many jobs fewer than they are a push says to have stored.
	ends    []*joblinev1.WaitResponse
	waits   int
	missing int32
	// What is changed in the answer to a push, where that is set.
	change func(n int, response *joblinev1.PushResponse)
	// What is done first in each call, where that is set.
	asked func(context.Context) error
	// What a call of Wait does, in the place of answering ends.
	wait func(*joblinev1.WaitRequest, joblinev1.JobService_WaitServer) error
}

func (f *fake) Push(ctx context.Context, request *joblinev1.PushRequest) (*joblinev1.PushResponse, error) {
	f.mu.Lock()
	f.requests, f.at = append(f.requests, request), append(f.at, time.Now())
	n := len(f.requests)
	f.mu.Unlock()
	if f.asked != nil {
		if err := f.asked(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.answer(n, request); err != nil {
		return nil, err
	}
	response := &joblinev1.PushResponse{FirstId: uint64(n) * 1_000, Count: int32(len(request.GetPayloads())+len(request.GetJobs())) - f.missing}
	if f.change != nil {
		f.change(n, response)
	}
	return response, nil
}

func (f *fake) Wait(request *joblinev1.WaitRequest, stream joblinev1.JobService_WaitServer) error {
	f.mu.Lock()
	f.waits++
	f.mu.Unlock()
	if f.asked != nil {
		if err := f.asked(stream.Context()); err != nil {
			return err
		}
	}
	if f.wait != nil {
		return f.wait(request, stream)
	}
	for _, end := range f.ends {
		if err := stream.Send(end); err != nil {
			return err
		}
	}
	return nil
}

func startFake(t *testing.T, answer func(n int, request *joblinev1.PushRequest) error, options *jobline.ClientOptions) (*fake, *jobline.Client) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, server := &fake{answer: answer}, grpc.NewServer()
	joblinev1.RegisterJobServiceServer(server, f)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	if options == nil {
		options = &jobline.ClientOptions{}
	}
	options.Logger = quiet
	return f, clientOf(t, listener.Addr().String(), options)
}

func TestLostAnswerIsAskedForAgainUnderTheSameNumber(t *testing.T) {
	f, client := startFake(t, func(n int, _ *joblinev1.PushRequest) error {
		if n < 3 {
			return status.Error(codes.Unavailable, "the connection broke")
		}
		return nil
	}, nil)
	if _, err := client.Push(newContext(t), "q", nil, nil); err != nil {
		t.Fatal(err)
	}
	first, last := f.requests[0].GetProducer(), f.requests[2].GetProducer()
	if len(f.requests) != 3 || first.GetSequence() == 0 || string(first.GetId()) != string(last.GetId()) || first.GetSequence() != last.GetSequence() {
		t.Fatalf("%v, then %v", first, last)
	}
	if _, err := client.PushMany(newContext(t), "q", []jobline.NewJob{{}}, nil); err != nil {
		t.Fatal(err)
	}
	if next := f.requests[3].GetProducer(); next.GetSequence() != 2 || next.GetAnsweredBelow() != 2 {
		t.Fatalf("the next call is %v", next)
	}
}

func TestRetryInfoIsHeeded(t *testing.T) {
	t.Parallel()
	draining, err := status.New(codes.Unavailable, "draining").WithDetails(
		&errdetails.ErrorInfo{Reason: "DRAINING", Domain: "jobline"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(700 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	f, client := startFake(t, func(n int, _ *joblinev1.PushRequest) error {
		if n == 1 {
			return draining.Err()
		}
		return nil
	}, nil)
	if _, err := client.Push(newContext(t), "q", nil, nil); err != nil {
		t.Fatal(err)
	}
	if pause := f.at[1].Sub(f.at[0]); pause < 700*time.Millisecond {
		t.Fatalf("it came back after %v", pause)
	}
}

// TestJobThatIsRefusedAloneIsNotPushedAgain: the answer to its call says why it is refused.
func TestJobThatIsRefusedAloneIsNotPushedAgain(t *testing.T) {
	reasons := map[string]error{
		"IDEMPOTENCY_MISMATCH": jobline.ErrIdempotencyMismatch, "UNIQUE_KEY_HELD": jobline.ErrUniqueKeyHeld,
		"JOB_AWAITED": jobline.ErrFailedPrecondition, "OF_A_LATER_SERVER": jobline.ErrAlreadyExists,
	}
	for reason, want := range reasons {
		f, client := startFake(t, stored, nil)
		f.change = func(_ int, response *joblinev1.PushResponse) {
			response.Count--
			response.Exceptions = []*joblinev1.PushException{{Index: 1, Outcome: jobline.PushRefused, Reason: reason}}
		}
		jobs := []jobline.NewJob{{}, {Options: jobline.PushOptions{JobKey: "j", UniqueKey: "u"}}}
		pushed, err := client.PushMany(newContext(t), "q", jobs, &jobline.PushManyOptions{NotAtomic: true})
		var refused *jobline.Error
		if err != nil || !errors.As(pushed[1].Err, &refused) || !errors.Is(refused, want) || refused.Reason != reason || !refused.Definite() {
			t.Errorf("%s: got %+v, %v", reason, pushed, err)
		}
		if len(f.requests) != 1 {
			t.Errorf("%s: %d calls", reason, len(f.requests))
		}
	}
}

func TestUnknownOutcomeEndsWithTheTimeout(t *testing.T) {
	_, client := startFake(t, func(int, *joblinev1.PushRequest) error {
		return status.Error(codes.Unavailable, "never")
	}, &jobline.ClientOptions{Timeout: 300 * time.Millisecond})
	_, err := client.Push(newContext(t), "q", nil, nil)
	var e *jobline.Error
	if !errors.Is(err, jobline.ErrOutcomeUnknown) || !errors.Is(err, jobline.ErrUnavailable) || !errors.As(err, &e) ||
		e.RequestID == "" || e.Definite() || !e.Retryable() {
		t.Fatalf("got %v", err)
	}
}

func TestRefusalsAreNotRepeated(t *testing.T) {
	f, client := startFake(t, func(int, *joblinev1.PushRequest) error {
		full, _ := status.New(codes.ResourceExhausted, "full").WithDetails(
			&errdetails.ErrorInfo{Reason: "QUEUE_FULL", Domain: "jobline"},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
		return full.Err()
	}, nil)
	_, err := client.Push(newContext(t), "q", nil, nil)
	var e *jobline.Error
	if !errors.Is(err, jobline.ErrQueueFull) || !errors.As(err, &e) || e.RetryAfter != 2*time.Second || !e.Retryable() || len(f.requests) != 1 {
		t.Fatalf("%d calls: %v", len(f.requests), err)
	}
}

func TestFirstPushGoesAtOnceAndTheRestGather(t *testing.T) {
	free := make(chan struct{})
	f, client := startFake(t, func(n int, _ *joblinev1.PushRequest) error {
		if n == 1 {
			<-free
		}
		return nil
	}, nil)
	ctx := newContext(t)
	var all sync.WaitGroup
	push := func() {
		if _, err := client.Push(ctx, "q", []byte("x"), nil); err != nil {
			t.Error(err)
		}
	}
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.requests)
	}
	all.Go(push)
	eventually(t, "the first is there", func() bool { return count() == 1 })
	late, cancel := context.WithCancel(ctx)
	for range 50 {
		all.Go(push)
	}
	all.Go(func() {
		// It is withdrawn before it leaves.
		_, err := client.Push(late, "q", []byte("withdrawn"), nil)
		var e *jobline.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || !e.Definite() {
			t.Errorf("got %v", err)
		}
	})
	time.Sleep(100 * time.Millisecond) // all of them wait by now
	cancel()
	time.Sleep(100 * time.Millisecond)
	close(free)
	all.Wait()
	if count() != 2 || len(f.requests[1].GetPayloads()) != 50 {
		t.Fatalf("%d calls, the second of %d", count(), len(f.requests[1].GetPayloads()))
	}
}
