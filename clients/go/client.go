package jobline

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// ClientOptions are the settings of a Client. The zero value is the defaults below.
type ClientOptions struct {
	Connection

	// Timeout is how long a call may take, repeated pushes included; default 30 s, at most 9 min for
	// a push.
	Timeout time.Duration
	// BufferJobs and BufferBytes bound the single pushes that wait for the server; default 10,000 jobs
	// and 64 MiB. A push that does not fit is refused with ErrBufferFull.
	BufferJobs, BufferBytes int
	// Codec seals what is pushed and opens what comes back; default none.
	Codec *Codec
	// Middleware wraps all that is pushed, the first outermost.
	Middleware []PushMiddleware
	// Propagator writes the trace context into the headers of jobs; default that of the otel package.
	Propagator propagation.TextMapPropagator
	// TracerProvider makes a span of each push; default none: the caller's own span is propagated.
	TracerProvider trace.TracerProvider
	// Logger gets a warning while the server does not answer; default slog.Default.
	Logger *slog.Logger
}

// Client pushes jobs, waits for them, and reaches the other services. It is safe for use by many
// goroutines; a program needs one. It connects at its first call.
type Client struct {
	link       *link
	jobs       joblinev1.JobServiceClient
	calls      *pushCalls
	pusher     *pusher
	middleware []PushMiddleware
	codec      *Codec
	tracing    pushTracing
	waits      *sharedWaits
}

// New returns a client of the server at target: HOST:PORT, or a gRPC target such as
// unix:/run/jobline.sock; "" for JOBLINE_SERVER, else DefaultTarget. Options may be nil. Nothing is
// sent yet. Close it when it is not needed any more.
func New(target string, options *ClientOptions) (*Client, error) {
	if options == nil {
		options = &ClientOptions{}
	}
	target, err := targetOf(target)
	if err != nil {
		return nil, err
	}
	shows, err := options.identityOf(target)
	if err != nil {
		return nil, err
	}
	return newClient(target, shows, options)
}

// newClient returns a client that shows what is known already.
func newClient(target string, shows *identity, options *ClientOptions) (*Client, error) {
	if options.Timeout < 0 || options.BufferJobs < 0 || options.BufferBytes < 0 {
		return nil, refuse("options", "Timeout, BufferJobs and BufferBytes must not be negative")
	}
	channel, err := shows.open(target)
	if err != nil {
		return nil, err
	}
	l := &link{target: target, shows: shows, channel: channel, timeout: or(options.Timeout, 30*time.Second), log: options.Logger}
	if l.log == nil {
		l.log = slog.Default()
	}
	calls := newPushCalls()
	client := &Client{
		link: l, jobs: joblinev1.NewJobServiceClient(channel), calls: calls,
		pusher:     newPusher(l, calls, or(options.BufferJobs, 10_000), or(options.BufferBytes, 64<<20)),
		middleware: options.Middleware, codec: options.Codec,
		tracing: newPushTracing(options.Propagator, options.TracerProvider),
	}
	client.waits = &sharedWaits{client: client, jobs: map[uint64]*waitedJob{}, calls: map[*waitCall]struct{}{}}
	return client, nil
}

func or[T comparable](given, otherwise T) T {
	var zero T
	if given == zero {
		return otherwise
	}
	return given
}

// Connect returns when the server has answered once: ErrNotConnected within two seconds if it does
// not. Other calls do it by themselves.
func (c *Client) Connect(ctx context.Context) error { return c.link.reach(ctx) }

// Close refuses new pushes, waits for those under way, at most the client's timeout, and closes the
// connection. It may be called twice.
func (c *Client) Close() error {
	c.pusher.close(c.link.timeout)
	_ = c.link.channel.Close() // the second time it says that it is closed
	return nil
}

// Conn returns the connection for the generated stubs of package joblinev1, such as
// joblinev1.NewQueueServiceClient(client.Conn()). Its calls carry the client's metadata and return
// errors of this package; calls that change nothing are retried while the server is unavailable.
func (c *Client) Conn() grpc.ClientConnInterface { return c.link.channel }
