package jobline

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

const (
	// A reply, a frame or a page of the server.
	messageBytesMax = 64 << 20
	// How long a server that is starting is tried again, and how long one may take to answer.
	connectTime  = 2 * time.Second
	connectPause = 100 * time.Millisecond
)

// Connection says how to reach a server, and what to show it. The zero value has what the environment says:
// JOBLINE_TOKEN, and JOBLINE_TLS=1, JOBLINE_TLS_CA, JOBLINE_CLIENT_CERTIFICATE and JOBLINE_CLIENT_KEY for TLS;
// without them it is plaintext.
type Connection struct {
	// Token is an API key or a JSON Web Token, which goes with each call; default JOBLINE_TOKEN.
	Token Token
	// TokenFunc returns the token of now, in the place of Token. Each call asks it, so it should keep one. Its
	// errors are ErrNoToken: nothing was sent. A call that is refused as its token has ended is made again with
	// the next one, and streams are opened again.
	TokenFunc func(context.Context) (string, error) `json:"-"`
	// InsecureToken sends tokens in plaintext to other hosts than this one, which is refused otherwise.
	InsecureToken bool
	// TLS turns TLS on; &TLS{} has the authorities of the system. Default: what the environment says.
	TLS *TLS
	// Credentials of the channel, in the place of TLS, such as credentials.NewTLS(config), or
	// insecure.NewCredentials() for plaintext whatever the environment says.
	Credentials credentials.TransportCredentials `json:"-"`
	// Metadata goes with each call.
	Metadata Metadata
	// DialOptions are added to those of this package.
	DialOptions []grpc.DialOption `json:"-"`
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
func (i *identity) open(target string) (*grpc.ClientConn, error) {
	intercept := interceptor{i}
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(i.credentials),
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
	}, i.dialOptions...)
	channel, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, refuse("target", "%v", err)
	}
	return channel, nil
}

// interceptor adds what a client shows to its calls, and types their errors.
type interceptor struct{ *identity }

func (i interceptor) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	once := func(outgoing context.Context) *Error {
		wasClosed := cc.GetState() == connectivity.Shutdown
		if err := invoke(outgoing, method, request, reply, cc, options...); err != nil {
			if isClosing(err) && !wasClosed { // under it, so that it may have been heard
				closed := newError(ErrUnavailable, "the client was closed during the call").because(err)
				closed.Code = codes.Unavailable
				return closed
			}
			return i.explain(errorOf(ctx, err))
		}
		i.hasConnected.Store(true)
		return nil
	}
	outgoing, token, err := i.outgoing(ctx, method)
	if err != nil {
		return err
	}
	failed := once(outgoing)
	if failed != nil && i.mayRenew(failed) {
		if outgoing, next, err := i.outgoing(ctx, method); err == nil && next != token {
			failed = once(outgoing)
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

func (i interceptor) stream(ctx context.Context, description *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	outgoing, _, err := i.outgoing(ctx, method)
	if err != nil {
		return nil, err
	}
	stream, err := open(outgoing, description, cc, method, options...)
	if err != nil {
		return nil, i.explain(errorOf(ctx, err))
	}
	return typedStream{stream, i.identity}, nil
}

type typedStream struct {
	grpc.ClientStream
	shows *identity
}

func (s typedStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil && !s.shows.hasConnected.Load() {
		s.shows.hasConnected.Store(true)
	}
	if err == nil || err == io.EOF { //nolint:errorlint // gRPC's contract is io.EOF itself
		return err
	}
	return s.shows.explain(errorOf(s.Context(), err))
}

// link is the channel of a client, and how calls are made on it.
type link struct {
	target  string
	shows   *identity
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
