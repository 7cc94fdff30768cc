package jobline_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// TestFrameOfBrokenServerEndsItsStreamAndNotTheProgram, nor does it hold what the worker needs to go on.
func TestFrameOfBrokenServerEndsItsStreamAndNotTheProgram(t *testing.T) {
	t.Parallel()
	column := &joblinev1.HeaderColumn{Key: "traceparent", Values: []string{"of one job"}}
	wrong := []*joblinev1.StreamResponse{
		{Opened: &joblinev1.StreamOpened{Session: "s-1", HeldIds: []uint64{1, 2}, HeldDeliveries: []uint64{1}}},
		{Opened: &joblinev1.StreamOpened{Session: "s-1", HeldIds: make([]uint64, 300_000), HeldDeliveries: make([]uint64, 300_000)}},
		{Opened: &joblinev1.StreamOpened{Session: "s-1"}, Runs: []*joblinev1.LeasedRun{
			{FirstId: 1, Delivery: 1, Queue: "q", Payloads: make([][]byte, 3), LeaseMs: 30_000, HeaderColumns: []*joblinev1.HeaderColumn{column}},
		}},
	}
	s, address := startStreams(t, func(n int, stream joblinev1.JobService_StreamServer) error {
		if n > len(wrong) {
			if err := hello(stream); err != nil {
				return err
			}
			return sendAgain(stream, &joblinev1.StreamResponse{})
		}
		if err := stream.Send(wrong[n-1]); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	})
	worker := workerOf(t, address, jobline.WorkerOptions{Propagator: propagation.TraceContext{}})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) {
		t.Error("a job of a wrong frame was handled")
		return 1, nil
	})
	start(t, worker)
	if s.count() != len(wrong)+1 {
		t.Errorf("it connected with stream %d", s.count())
	}
}

// sendAgain sends a frame every 100 ms, so that the server is not silent.
func sendAgain(stream joblinev1.JobService_StreamServer, frame *joblinev1.StreamResponse) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(100 * time.Millisecond):
			if err := stream.Send(frame); err != nil {
				return err
			}
		}
	}
}

func TestResultsOfPhasesThatTheJobDoesNotHave(t *testing.T) {
	t.Parallel()
	_, address := startStreams(t, func(_ int, stream joblinev1.JobService_StreamServer) error {
		if err := hello(stream); err != nil {
			return err
		}
		alone := &joblinev1.LeasedJob{Id: 9, Delivery: 1, Queue: "q", PhaseResults: [][]byte{{1}, {2}}}
		if err := stream.Send(&joblinev1.StreamResponse{Jobs: []*joblinev1.LeasedJob{alone}}); err != nil {
			return err
		}
		return sendAgain(stream, &joblinev1.StreamResponse{})
	})
	worker := workerOf(t, address, jobline.WorkerOptions{SoftStop: time.Millisecond, HardStop: time.Millisecond})
	found := make(chan bool, 1)
	jobline.Handle(worker, "q", "", func(_ context.Context, job *jobline.Job[[]byte]) (int, error) {
		isFinished := true
		defer func() { found <- isFinished }()
		var result []byte
		var err error
		isFinished, err = job.PhaseResult("none", &result)
		return 1, err
	})
	start(t, worker)
	if <-found {
		t.Error("a phase is finished that the job does not have")
	}
}

// TestRefusalOfAnySizeIsALineAndAPauseOfAnHourAtMost: what a server says of an error is kept and logged by each caller.
func TestRefusalOfAnySizeIsALineAndAPauseOfAnHourAtMost(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20_000)
	_, client := startFake(t, func(int, *joblinev1.PushRequest) error {
		refusal, err := status.New(codes.ResourceExhausted, long).WithDetails(
			&errdetails.ErrorInfo{Reason: "R" + long, Domain: "jobline"},
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "f" + long}}},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(math.MaxInt64)})
		if err != nil {
			return err
		}
		return refusal.Err()
	}, nil)
	_, err := client.Push(newContext(t), "q", nil, nil)
	var e *jobline.Error
	if !errors.As(err, &e) || e.RetryAfter != time.Hour {
		t.Fatalf("got %.100v", err)
	}
	if len(e.Message) > 5_000 || len(e.Reason) > 5_000 || len(e.Field) > 5_000 {
		t.Errorf("its message has %d bytes, its reason %d, its field %d", len(e.Message), len(e.Reason), len(e.Field))
	}
}
