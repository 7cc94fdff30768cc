package jobline

import (
	"bytes"
	"context"
	"reflect"
	"time"
)

// AnyName as the name of a handler takes every name of its queue that no other handler takes.
const AnyName = "*"

// NoResult is the result of a handler that has none.
type NoResult struct{}

// A result that is larger would cost the worker its stream.
const resultBytesMax = 1 << 20

// route is a handler, and how its jobs are found.
type route struct {
	queue, name string
	size        int // 0: one job at a time
	wait        time.Duration
	payload     string // JSON Schemas; "" for none
	result      string
	one         func(context.Context, *LeasedJob) (encoded, error)
	many        func(context.Context, []*LeasedJob, *answers) error
}

// Handle makes a function the handler of the jobs of a queue with a name: "" for jobs without one,
// [AnyName] for all that no other handler takes. The payload is read from JSON, or as it is for []byte;
// what cannot be read fails the attempt. The function returns a result (bytes, or any value as JSON,
// ≤ 1 MiB; [NoResult] for none), or an error, which may be an [Outcome]. Its context is cancelled when
// it should stop, with a [StopReason] as the cause. A panic fails the attempt.
//
// JSON Schemas of both types are announced, as encoding/json has them: operators see them, `jobline generate` makes
// wrappers of them, and a queue with check_payloads refuses what does not fit. A field is required unless it has
// omitempty or omitzero, or is a pointer. Bytes, any, and types that marshal themselves take anything.
//
// It panics for a second handler of the same jobs, for a queue that WorkerOptions.Queues does not
// name, and once the worker runs: mistakes of the program.
func Handle[T, R any](worker *Worker, queue, name string, handler func(ctx context.Context, job *Job[T]) (R, error)) {
	payload, result := schemaText(reflect.TypeFor[T]()), schemaText(reflect.TypeFor[R]())
	worker.add(&route{queue: queue, name: name, payload: payload, result: result, one: func(ctx context.Context, leased *LeasedJob) (encoded, error) {
		job := &Job[T]{LeasedJob: leased}
		if err := decode(leased.Raw, &job.Payload); err != nil {
			return encoded{}, err
		}
		result, err := handler(ctx, job)
		if err != nil {
			return encoded{}, err
		}
		return encodeResult(result)
	}})
}

// BatchHandlerOptions say when a batch is handed to its handler. The zero value is 100 jobs, or 50 ms
// after the first.
type BatchHandlerOptions struct {
	// Size is how many jobs a batch has at most.
	Size int
	// Wait is how long the first job of a batch waits for others.
	Wait time.Duration
}

// Batch is the jobs of one call of a batch handler. Each needs an answer: Done or Fail.
type Batch[T, R any] struct {
	Jobs    []*Job[T]
	answers *answers
}

// Done completes a job with its result.
func (b *Batch[T, R]) Done(job *Job[T], result R) {
	data, err := encodeResult(result)
	b.answers.set(job.LeasedJob, data, err)
}

// Fail fails a job by an error, which may be an [Outcome].
func (b *Batch[T, R]) Fail(job *Job[T], err error) {
	if err == nil {
		err = newError(ErrInvalidArgument, "the batch handler failed the job without an error")
	}
	b.answers.set(job.LeasedJob, encoded{}, err)
}

// HandleBatch makes a function the handler of many jobs at a time. It answers each by Done or Fail: a
// job without an answer fails, and is never assumed done. An error that it returns fails the jobs
// that have no answer. Its context ends when all of its jobs should stop. Options may be nil; for the
// rest see [Handle].
func HandleBatch[T, R any](worker *Worker, queue, name string, options *BatchHandlerOptions, handler func(ctx context.Context, batch *Batch[T, R]) error) {
	if options == nil {
		options = &BatchHandlerOptions{}
	}
	worker.add(&route{
		queue: queue, name: name, payload: schemaText(reflect.TypeFor[T]()), result: schemaText(reflect.TypeFor[R]()),
		size: max(or(options.Size, 100), 1), wait: or(options.Wait, 50*time.Millisecond),
		many: func(ctx context.Context, leased []*LeasedJob, answers *answers) error {
			batch := &Batch[T, R]{answers: answers}
			for _, one := range leased {
				job := &Job[T]{LeasedJob: one}
				if err := decode(one.Raw, &job.Payload); err != nil {
					answers.set(one, encoded{}, err)
					continue
				}
				batch.Jobs = append(batch.Jobs, job)
			}
			if len(batch.Jobs) == 0 {
				return nil
			}
			return handler(ctx, batch)
		},
	})
}

// encoded is a value as bytes, and what these are: "" for bytes.
type encoded struct {
	data        []byte
	contentType string
}

func encodeResult(result any) (encoded, error) {
	if _, isNone := result.(NoResult); isNone {
		return encoded{}, nil
	}
	data, contentType, err := encode(result)
	if err != nil {
		return encoded{}, err
	}
	if contentType != "" && bytes.Equal(data, []byte("null")) {
		return encoded{}, nil // a nil pointer, map or slice
	}
	if len(data) > resultBytesMax {
		return encoded{}, newError(ErrCodec, "a result is at most 1 MiB, not %d bytes", len(data))
	}
	return encoded{data, contentType}, nil
}

// Handler runs the jobs of one call of a handler: one, or those of a batch.
type Handler func(ctx context.Context, jobs []*LeasedJob) error

// Middleware wraps each call of a handler. The error is that of the handler; an error in its place
// becomes that of its jobs.
type Middleware func(next Handler) Handler
