package jobline

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	// A reply, a frame or a page of the server.
	messageBytesMax = 64 << 20
	// How long a server that is starting is tried again, and how long one may take to answer.
	connectTime  = 2 * time.Second
	connectPause = 100 * time.Millisecond
)

// Connection says how to reach a server. The zero value is plaintext without metadata.
type Connection struct {
	// Credentials of the channel, such as credentials.NewTLS(config); default plaintext.
	Credentials credentials.TransportCredentials
	// Metadata goes with each call, such as {"authorization": "Bearer …"}.
	Metadata map[string]string
	// DialOptions are added to those of this package.
	DialOptions []grpc.DialOption
}

// Calls that change nothing, or nothing more when they are repeated. Push is not among them: the
// client repeats it itself, for longer and under one number.
var safeCalls = map[string][]string{
	"JobService":        {"Pull", "Ack", "Fail", "Release", "Extend"},
	"JobAdminService":   {"GetJob", "ListJobs", "ExplainJob"},
	"QueueService":      {"ListQueues", "GetQueue", "UpdateQueue", "PauseQueue", "ResumeQueue"},
	"LimiterService":    {"UpsertLimiter", "GetLimiter", "ListLimiters", "EmptyLimiter"},
	"ScheduleService":   {"GetSchedule", "ListSchedules", "PreviewSchedule", "UpdateSchedule", "PauseSchedule", "ResumeSchedule"},
	"BatchService":      {"CreateBatch", "CloseBatch", "GetBatch", "ListBatches", "CancelBatch"},
	"FlowService":       {"PushFlow", "GetFlow"},
	"DeadLetterService": {"ListDeadJobs", "GetDeadLetterStats"},
	"AdminService":      {"GetBackup", "GetStats", "ListOperations", "ListWorkers"},
}

func serviceConfig() string {
	var names []map[string]string
	for service, methods := range safeCalls {
		for _, method := range methods {
			names = append(names, map[string]string{"service": "jobline.v1." + service, "method": method})
		}
	}
	config, _ := json.Marshal(map[string]any{"methodConfig": []any{map[string]any{
		"name": names,
		"retryPolicy": map[string]any{
			"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
			"retryableStatusCodes": []string{"UNAVAILABLE"},
		},
	}}})
	return string(config)
}

// open opens a channel of its own.
func (c Connection) open(target string) (*grpc.ClientConn, error) {
	if c.Credentials == nil {
		c.Credentials = insecure.NewCredentials()
	}
	intercept := interceptor{metadata: metadata.New(maps.Clone(c.Metadata))}
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(c.Credentials),
		grpc.WithDefaultServiceConfig(serviceConfig()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(messageBytesMax), grpc.MaxCallSendMsgSize(messageBytesMax)),
		// gRPC's own defaults wait up to two minutes before it tries a restarted server.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		// Finds a dead connection under calls that wait long; the server permits a ping every 10 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 15 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithChainUnaryInterceptor(intercept.unary),
		grpc.WithChainStreamInterceptor(intercept.stream),
	}, c.DialOptions...)
	channel, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, refuse("target", "%v", err)
	}
	return channel, nil
}

// interceptor adds the metadata of a connection, and types its errors.
type interceptor struct {
	metadata metadata.MD
}

func (i interceptor) outgoing(ctx context.Context) context.Context {
	if len(i.metadata) == 0 {
		return ctx
	}
	given, _ := metadata.FromOutgoingContext(ctx)
	return metadata.NewOutgoingContext(ctx, metadata.Join(i.metadata, given))
}

func (i interceptor) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := invoke(i.outgoing(ctx), method, request, reply, cc, options...); err != nil {
		return errorOf(ctx, err)
	}
	return nil
}

func (i interceptor) stream(ctx context.Context, description *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(i.outgoing(ctx), description, cc, method, options...)
	if err != nil {
		return nil, errorOf(ctx, err)
	}
	return typedStream{stream}, nil
}

type typedStream struct{ grpc.ClientStream }

func (s typedStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil || err == io.EOF { //nolint:errorlint // gRPC's contract is io.EOF itself
		return err
	}
	return errorOf(s.Context(), err)
}

// link is the channel of a client, and how calls are made on it.
type link struct {
	target  string
	channel *grpc.ClientConn
	timeout time.Duration
	log     *slog.Logger

	isReached  atomic.Bool
	isTroubled atomic.Bool
}

// reach returns when the server has answered once. Before that nothing was sent, so the refusal is
// definite, and comes in seconds.
func (l *link) reach(ctx context.Context) error {
	if l.isReached.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, min(connectTime, l.timeout))
	defer cancel()
	health := grpc_health_v1.NewHealthClient(l.channel)
	var why error
	for {
		_, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		var failed *Error
		if err != nil {
			failed = errorOf(ctx, err)
		}
		if failed == nil || failed.Reason != "" || !(failed.Is(ErrUnavailable) || failed.Is(ErrDeadlineExceeded)) {
			l.isReached.Store(true) // whatever it said, a server did
			return nil
		}
		if why == nil || ctx.Err() == nil {
			why = failed
		}
		if !sleep(ctx, connectPause) {
			return newError(ErrNotConnected, "cannot reach %s: %v", l.target, why).because(why)
		}
	}
}

// troubled logs once that pushes get no reply and are repeated; answered that they do again.
func (l *link) troubled(err error) {
	if l.isTroubled.CompareAndSwap(false, true) {
		l.log.Warn("no answer to pushes, they are repeated", "server", l.target, "for", l.timeout, "error", err)
	}
}

func (l *link) answered() {
	if l.isTroubled.Load() && l.isTroubled.CompareAndSwap(true, false) {
		l.log.Info("the server answers again", "server", l.target)
	}
}

// sleep returns false if the context ended first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// call makes a call that changes nothing, or the same if repeated, within the client's timeout.
func call[Q, R any](ctx context.Context, l *link, method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	if err := l.reach(ctx); err != nil {
		var none R
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return method(ctx, request)
}

// write makes a call that changes something: without a definite reply it returns ErrOutcomeUnknown.
func write[Q, R any](ctx context.Context, l *link, method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) (R, error) {
	reply, err := call(ctx, l, method, request)
	if err != nil {
		return reply, unknownOutcome(errorOf(ctx, err), "", 1)
	}
	return reply, nil
}
