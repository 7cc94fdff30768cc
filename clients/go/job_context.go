package jobline

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Stopped returns why the handler should stop, a [StopReason]; nil while it should go on. In a batch
// handler, whose context ends when all of its jobs should stop, it says so of one job.
func (j *LeasedJob) Stopped() error {
	if reason := j.stopReason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// contextOf returns the context of a handler, and how to end it when the handler has.
func (r *workerRun) contextOf(jobs []*LeasedJob) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(r.base)
	if len(jobs) > 1 {
		left := new(atomic.Int64)
		left.Store(int64(len(jobs)))
		for _, job := range jobs {
			job.cancel = func(cause error) {
				if left.Add(-1) == 0 {
					cancel(cause)
				}
			}
		}
		return r.tracing.process(ctx, jobs, cancel)
	}
	job := jobs[0]
	job.cancel = cancel
	end := cancel
	if timeout := job.job.Options().GetTimeout().AsDuration(); timeout > 0 {
		// As the server counts it, which tells of it within a second.
		bounded, free := context.WithDeadlineCause(ctx, job.job.ReceivedAt.Add(timeout), StopTimeout)
		ctx, end = bounded, func(cause error) { cancel(cause); free() }
	}
	return r.tracing.process(ctx, jobs, end)
}

// workTracing continues the trace of the pushes in handlers.
type workTracing struct {
	propagator propagation.TextMapPropagator
	tracer     trace.Tracer
	isChild    bool
	isOn       bool
}

func newWorkTracing(propagator propagation.TextMapPropagator, provider trace.TracerProvider, isChild bool) workTracing {
	t := workTracing{propagator: propagator, isChild: isChild}
	if propagator == nil {
		t.propagator = otel.GetTextMapPropagator()
	}
	if provider != nil {
		t.tracer = provider.Tracer(tracerName)
	}
	t.isOn = t.tracer != nil || len(t.propagator.Fields()) > 0
	return t
}

// process puts the producer's context into that of a handler: as a link of a span of its own, or as its
// parent. A batch has a link for each of its jobs.
func (t *workTracing) process(ctx context.Context, jobs []*LeasedJob, end context.CancelCauseFunc) (context.Context, context.CancelCauseFunc) {
	if !t.isOn {
		return ctx, end
	}
	var links []trace.Link
	for _, job := range jobs {
		produced := t.propagator.Extract(ctx, propagation.MapCarrier(job.Headers()))
		if from := trace.SpanContextFromContext(produced); from.IsValid() {
			links = append(links, trace.Link{SpanContext: from})
		}
		if len(jobs) == 1 {
			// Baggage and the like; and the producer's span as the parent, unless a span links to it.
			ctx = produced
		}
	}
	if t.tracer == nil {
		return ctx, end
	}
	queue := jobs[0].Queue
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("messaging.system", "jobline"),
			attribute.String("messaging.destination.name", queue),
			attribute.Int("messaging.batch.message_count", len(jobs))),
	}
	if !t.isChild || len(jobs) > 1 {
		options = append(options, trace.WithNewRoot())
	}
	ctx, span := t.tracer.Start(ctx, "process "+queue, options...)
	return ctx, func(cause error) { span.End(); end(cause) }
}
