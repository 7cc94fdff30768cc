package jobline

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Outgoing is a job on its way out, as it will be stored. Middleware may change it.
type Outgoing struct {
	Queue   string
	Payload []byte
	Options PushOptions
}

// SetHeader sets a header of the job.
func (o *Outgoing) SetHeader(key, value string) {
	if o.Options.Headers == nil {
		o.Options.Headers = map[string]string{}
	}
	o.Options.Headers[key] = value
}

// PushFunc pushes jobs, all of one queue, and returns the outcome of each, in order.
type PushFunc func(ctx context.Context, jobs []*Outgoing) ([]Pushed, error)

// PushMiddleware wraps all that a client pushes: one job for Push, all of them for PushMany. It may
// change jobs, but not their number, and refuse them by an error.
type PushMiddleware func(next PushFunc) PushFunc

// through pushes jobs through the middleware of a client, and traces them.
func (c *Client) through(ctx context.Context, jobs []*Outgoing, send PushFunc) ([]Pushed, error) {
	count := len(jobs)
	next := func(ctx context.Context, jobs []*Outgoing) ([]Pushed, error) {
		if len(jobs) != count {
			return nil, refuse("jobs", "middleware made %d jobs of %d", len(jobs), count)
		}
		for _, job := range jobs {
			if job.Queue != jobs[0].Queue {
				return nil, refuse("queue", "middleware sent the jobs of one call to several queues")
			}
		}
		return c.tracing.push(ctx, jobs, send)
	}
	for i := len(c.middleware) - 1; i >= 0; i-- {
		next = c.middleware[i](next)
	}
	return next(ctx, jobs)
}

const tracerName = "github.com/jobline/jobline/clients/go"

// pushTracing writes the trace context into headers, in a span of its own if there is a tracer.
type pushTracing struct {
	propagator propagation.TextMapPropagator
	tracer     trace.Tracer
}

func newPushTracing(propagator propagation.TextMapPropagator, provider trace.TracerProvider) pushTracing {
	t := pushTracing{propagator: propagator}
	if propagator == nil {
		t.propagator = otel.GetTextMapPropagator()
	}
	if provider != nil {
		t.tracer = provider.Tracer(tracerName)
	}
	return t
}

// isOn reports whether anything would be written.
func (t *pushTracing) isOn() bool { return t.tracer != nil || len(t.propagator.Fields()) > 0 }

func (t *pushTracing) push(ctx context.Context, jobs []*Outgoing, send PushFunc) ([]Pushed, error) {
	if !t.isOn() {
		return send(ctx, jobs)
	}
	if t.tracer != nil {
		queue := jobs[0].Queue
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "push "+queue, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(attribute.String("messaging.system", "jobline"),
				attribute.String("messaging.destination.name", queue),
				attribute.Int("messaging.batch.message_count", len(jobs))))
		defer span.End()
		pushed, err := t.inject(ctx, jobs, send)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return pushed, err
	}
	return t.inject(ctx, jobs, send)
}

func (t *pushTracing) inject(ctx context.Context, jobs []*Outgoing, send PushFunc) ([]Pushed, error) {
	for _, job := range jobs {
		t.propagator.Inject(ctx, headerCarrier{job})
	}
	return send(ctx, jobs)
}

// headerCarrier sets headers of a job, unless the caller has.
type headerCarrier struct{ job *Outgoing }

func (h headerCarrier) Get(key string) string { return h.job.Options.Headers[key] }
func (h headerCarrier) Set(key, value string) {
	if value != "" && h.job.Options.Headers[key] == "" {
		h.job.SetHeader(key, value)
	}
}

// Keys is not called when headers are written.
func (h headerCarrier) Keys() []string { return nil }
