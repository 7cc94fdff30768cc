package jobline

import (
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobline/jobline/clients/go/internal/pacing"
)

const (
	pauseFailuresMax = 1_000_000
	failurePauseMax  = 24 * time.Hour
)

// WorkerOptions are the settings of a Worker. The zero value is the defaults below.
type WorkerOptions struct {
	Connection

	// Concurrency is how many handlers run at once; default 16.
	Concurrency int
	// Window is how many jobs to have at hand, started ones included, ≤ 100,000; 0 follows the work,
	// None pauses. WindowBytes of their payloads; default 64 MiB.
	Window      int
	WindowBytes int64
	// Lease overrides the jobs' own, 1 s … 12 h. Leases are kept alive however long a handler takes.
	Lease time.Duration
	// Queues are all that the worker takes from, with weights 1 … 1,000; default those of its handlers,
	// alike.
	Queues map[string]int
	// ID and Labels are what operators see; default host and process id. Version is that of the
	// program, for PushOptions.MinWorkerVersion.
	ID      string
	Version string
	Labels  map[string]string
	// SoftStop is how long handlers may take to finish once the worker stops, default 20 s; HardStop how
	// long to end after their contexts are cancelled then, default 5 s. What is left is released.
	SoftStop, HardStop time.Duration
	// CancelGrace is how long a handler may run on when its job was cancelled or its lease is lost,
	// default 30 s. One that does is logged with its stack and counted as Stuck; another takes its place.
	CancelGrace time.Duration
	// PauseAfterFailures is after how many attempts that fail in a row, ≤ 1,000,000, the worker takes no jobs for
	// FailurePause, default 30 s, ≤ 24 h, and gives back those that it has not begun; then one more failure is
	// enough, until a job succeeds. Default 0: never.
	PauseAfterFailures int
	FailurePause       time.Duration
	// ExitWhenIdle ends Run when the worker had no job for so long; default never.
	ExitWhenIdle time.Duration
	// StopSignals stop the worker, such as syscall.SIGTERM and os.Interrupt; a second one begins the next
	// stage at once. Default none: the program's context decides.
	StopSignals []os.Signal
	// HealthAddress is HOST:PORT of GET /healthz and GET /metrics (Prometheus); without a host on 127.0.0.1,
	// port 0 for one that the system chooses. See [Worker.HealthAddress]. Default "": none.
	HealthAddress string
	// Codec opens the payloads of sealed jobs, and seals their results; default none.
	Codec *Codec
	// Middleware wraps each call of a handler, the first outermost.
	Middleware []Middleware
	// Propagator reads the trace context from the headers of jobs; default that of the otel package.
	Propagator propagation.TextMapPropagator
	// TracerProvider makes a span of each call of a handler, which links to the producer's, or with
	// TraceAsChild is its child; default none.
	TracerProvider trace.TracerProvider
	TraceAsChild   bool
	// Logger gets connections, attempts that fail, and jobs that die; default slog.Default.
	Logger *slog.Logger
}

func (o *WorkerOptions) check() error {
	switch {
	case o.Concurrency < 0:
		return refuse("Concurrency", "must be at least 1, not %d", o.Concurrency)
	case o.Window < None || o.Window > pacing.WindowMax:
		return refuse("Window", "must be 1 … 100,000 or None, not %d", o.Window)
	case o.WindowBytes < 0:
		return refuse("WindowBytes", "must not be negative, and is %d", o.WindowBytes)
	case o.Lease != 0 && (o.Lease < time.Second || o.Lease > 12*time.Hour):
		return refuse("Lease", "must be 1 s … 12 h, not %s", o.Lease)
	case o.PauseAfterFailures < 0 || o.PauseAfterFailures > pauseFailuresMax:
		return refuse("PauseAfterFailures", "must be 0 … 1,000,000, not %d", o.PauseAfterFailures)
	case o.FailurePause < 0 || o.FailurePause > failurePauseMax:
		return refuse("FailurePause", "must be 0 … 24 h, not %s", o.FailurePause)
	}
	for _, span := range []time.Duration{o.SoftStop, o.HardStop, o.CancelGrace, o.ExitWhenIdle} {
		if span < 0 {
			return refuse("options", "times of a worker must not be negative, and one is %s", span)
		}
	}
	return nil
}

func (o *WorkerOptions) fill() {
	o.Concurrency = or(o.Concurrency, 16)
	switch o.Window {
	case 0:
		o.Window = -1 // follows the work
	case None:
		o.Window = 0
	}
	o.WindowBytes = or(o.WindowBytes, 64<<20)
	o.SoftStop = or(o.SoftStop, 20*time.Second)
	o.HardStop = or(o.HardStop, 5*time.Second)
	o.CancelGrace = or(o.CancelGrace, 30*time.Second)
	o.FailurePause = or(o.FailurePause, 30*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
