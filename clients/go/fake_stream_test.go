package jobline_test

import (
	"context"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// streams is a server whose streams behave as a test tells them to.
type streams struct {
	joblinev1.UnimplementedJobServiceServer
	mu    sync.Mutex
	opens []*joblinev1.StreamOpen
	peers []string
	serve func(n int, stream joblinev1.JobService_StreamServer) error
}

func (s *streams) Stream(stream joblinev1.JobService_StreamServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	from, _ := peer.FromContext(stream.Context())
	s.mu.Lock()
	s.opens, s.peers = append(s.opens, first.GetOpen()), append(s.peers, from.Addr.String())
	n := len(s.opens)
	s.mu.Unlock()
	return s.serve(n, stream)
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.opens)
}

func startStreams(t *testing.T, serve func(n int, stream joblinev1.JobService_StreamServer) error) (*streams, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, server := &streams{serve: serve}, grpc.NewServer()
	joblinev1.RegisterJobServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, listener.Addr().String()
}

func hello(stream joblinev1.JobService_StreamServer) error {
	return stream.Send(&joblinev1.StreamResponse{Opened: &joblinev1.StreamOpened{
		Session: "s-1", HeartbeatInterval: durationpb.New(100 * time.Millisecond),
	}})
}

func TestSilentServerIsLeftForANewChannel(t *testing.T) {
	t.Parallel()
	s, address := startStreams(t, func(_ int, stream joblinev1.JobService_StreamServer) error {
		if err := hello(stream); err != nil {
			return err
		}
		<-stream.Context().Done() // and not a word more
		return nil
	})
	worker := workerOf(t, address, jobline.WorkerOptions{})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	start(t, worker)
	eventually(t, "three streams", func() bool { return s.count() >= 3 })
	if s.opens[0].GetSession() != "" || s.opens[1].GetSession() != "s-1" || s.peers[0] == s.peers[1] {
		t.Errorf("sessions %q and %q, from %v", s.opens[0].GetSession(), s.opens[1].GetSession(), s.peers)
	}
}

// TestBusyHandlersDoNotSilenceTheWorker: frames go out while all handlers compute.
func TestBusyHandlersDoNotSilenceTheWorker(t *testing.T) {
	frames := make(chan struct{}, 1_000)
	_, address := startStreams(t, func(_ int, stream joblinev1.JobService_StreamServer) error {
		run := &joblinev1.LeasedRun{FirstId: 1, Delivery: 1, Queue: "q", Payloads: make([][]byte, 4), LeaseMs: 30_000}
		if err := hello(stream); err != nil {
			return err
		}
		if err := stream.Send(&joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}}); err != nil {
			return err
		}
		for {
			if _, err := stream.Recv(); err != nil {
				return err
			}
			frames <- struct{}{}
			if err := stream.Send(&joblinev1.StreamResponse{}); err != nil {
				return err
			}
		}
	})
	worker := workerOf(t, address, jobline.WorkerOptions{Concurrency: 4, SoftStop: time.Millisecond, HardStop: time.Millisecond})
	var free atomic.Bool
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) {
		for !free.Load() { // busy
		}
		return 1, nil
	})
	start(t, worker)
	for range 5 {
		<-frames
	}
	free.Store(true)
}

func TestRefusedStreamEndsTheRunAndABrokenOneIsOpenedAgain(t *testing.T) {
	s, address := startStreams(t, func(n int, stream joblinev1.JobService_StreamServer) error {
		if n < 3 {
			return status.Error(codes.Unavailable, "not yet")
		}
		return status.Error(codes.PermissionDenied, "not you")
	})
	worker := workerOf(t, address, jobline.WorkerOptions{})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	err := worker.Run(newContext(t))
	if status.Code(err) != codes.PermissionDenied || s.count() != 3 {
		t.Fatalf("after %d streams: %v", s.count(), err)
	}
	if err := worker.Run(newContext(t)); status.Code(err) == codes.OK {
		t.Fatal("a worker runs once")
	}
}

func TestServersThatAskToMoveAtOnceAreNotCalledWithoutAPause(t *testing.T) {
	t.Parallel()
	for what, delay := range map[string]time.Duration{"none": 0, "negative": -time.Second, "tiny": 1, "for ever": math.MaxInt64} {
		s, address := startStreams(t, func(_ int, stream joblinev1.JobService_StreamServer) error {
			if err := hello(stream); err != nil {
				return err
			}
			return stream.Send(&joblinev1.StreamResponse{Goaway: &joblinev1.StreamGoaway{RetryDelay: durationpb.New(delay)}})
		})
		worker := workerOf(t, address, jobline.WorkerOptions{})
		jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
		start(t, worker)
		eventually(t, "a stream", func() bool { return s.count() >= 1 })
		time.Sleep(400 * time.Millisecond)
		if s.count() > 6 {
			t.Errorf("delay %s: %d streams in 0.4 s", what, s.count())
		}
	}
}

// TestServerThatSendsTooManyJobsIsLeftWithAPause, with an error that says so; what it says itself has no escape
// sequences when it comes to a log.
func TestServerThatSendsTooManyJobsIsLeftWithAPause(t *testing.T) {
	t.Parallel()
	s, address := startStreams(t, func(n int, stream joblinev1.JobService_StreamServer) error {
		if n == 1 {
			return status.Error(codes.Unavailable, "no\x1b[2J\nbody")
		}
		if err := hello(stream); err != nil {
			return err
		}
		for first := uint64(1); ; first += 100 {
			run := &joblinev1.LeasedRun{FirstId: first, Delivery: 1, Queue: "q", Payloads: make([][]byte, 100), LeaseMs: 30_000}
			if err := stream.Send(&joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}}); err != nil {
				return err
			}
		}
	})
	log := &lockedBuffer{}
	worker := workerOf(t, address, jobline.WorkerOptions{
		Concurrency: 1, Window: 2, SoftStop: time.Millisecond, HardStop: time.Millisecond, Logger: slog.New(slog.NewJSONHandler(log, nil)),
	})
	jobline.Handle(worker, "q", "", func(ctx context.Context, _ *jobline.Job[[]byte]) (int, error) {
		<-ctx.Done()
		return 1, nil
	})
	start(t, worker)
	eventually(t, "three streams", func() bool { return s.count() >= 3 })
	if stats := worker.Stats(); stats.Waiting > 2*2+100 {
		t.Errorf("%d jobs wait", stats.Waiting)
	}
	said := log.String()
	if !strings.Contains(said, "more jobs than the window allows") || !strings.Contains(said, "retry_in") ||
		strings.Contains(said, `\u001b`) || !strings.Contains(said, "\ufffd[2J body") {
		t.Error(said)
	}
}

// TestServerThatConfirmsNothingIsLeftAndToldAgain: settles are kept until they are confirmed, and would fill the
// memory; none is lost.
func TestServerThatConfirmsNothingIsLeftAndToldAgain(t *testing.T) {
	t.Parallel()
	handled := make(chan struct{}, 1_000)
	var settled atomic.Int64
	again := make(chan int, 1)
	s, address := startStreams(t, func(n int, stream joblinev1.JobService_StreamServer) error {
		opened := &joblinev1.StreamOpened{Session: "s-1", HeartbeatInterval: durationpb.New(10 * time.Second)}
		if err := stream.Send(&joblinev1.StreamResponse{Opened: opened}); err != nil {
			return err
		}
		if n == 1 {
			for settled.Load() < 1_000 {
				run := &joblinev1.LeasedRun{FirstId: uint64(settled.Load() + 1), Delivery: 1, Queue: "q", Payloads: [][]byte{{1}}, LeaseMs: 30_000}
				if err := stream.Send(&joblinev1.StreamResponse{Runs: []*joblinev1.LeasedRun{run}}); err != nil {
					return err
				}
				select {
				case <-handled:
					settled.Add(1)
				case <-stream.Context().Done():
					return nil
				}
			}
			return nil
		}
		told := 0
		for told < int(settled.Load()) {
			frame, err := stream.Recv()
			if err != nil {
				return err
			}
			for _, settle := range frame.GetSettles() {
				told += len(settle.GetAckIds()) + len(settle.GetAcks())
				confirm := &joblinev1.StreamConfirm{Seq: settle.GetSeq()}
				if err := stream.Send(&joblinev1.StreamResponse{Confirms: []*joblinev1.StreamConfirm{confirm}}); err != nil {
					return err
				}
			}
		}
		again <- told
		return sendAgain(stream, &joblinev1.StreamResponse{})
	})
	log := &lockedBuffer{}
	worker := workerOf(t, address, jobline.WorkerOptions{
		Concurrency: 1, Window: 1, Logger: slog.New(slog.NewJSONHandler(log, nil)),
	})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[[]byte]) (any, error) {
		handled <- struct{}{}
		return nil, nil
	})
	start(t, worker)
	eventually(t, "two streams", func() bool { return s.count() >= 2 })
	if told := int64(<-again); told != settled.Load() || told > 200 {
		t.Errorf("%d jobs were settled again, of %d", told, settled.Load())
	}
	if said := log.String(); !strings.Contains(said, "the server sends jobs and has not confirmed") {
		t.Error(said)
	}
}
