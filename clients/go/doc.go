// Package jobline is the Go client of Jobline, a job queue over gRPC.
//
// A [Client] pushes jobs and waits for their results:
//
//	client, err := jobline.New("localhost:7070", nil)
//	...
//	pushed, err := client.Push(ctx, "emails", Email{To: "a@b.c"}, nil)
//
// A [Worker] runs them. It holds one stream, keeps its leases alive however long a handler takes,
// resumes its session when the server comes back, and drains when its context ends:
//
//	worker, err := jobline.NewWorker("localhost:7070", nil)
//	...
//	jobline.Handle(worker, "emails", "", func(ctx context.Context, job *jobline.Job[Email]) (Sent, error) {
//		return send(ctx, job.Payload)
//	})
//	err = worker.Run(ctx)
//
// # Payloads and results
//
// A []byte travels as it is, a [json.RawMessage] and any other value as JSON.
//
// # Errors
//
// Every error that a call returns is, or wraps, an [*Error]: [errors.As] reaches its reason, field,
// id and [Error.Retryable]; [errors.Is] compares it with ErrQueueFull, ErrNotFound and the others.
// A refusal ([ErrRefused]) means that nothing was stored or changed. A push without a definite reply
// is repeated under the same number, so that nothing is stored twice, and ends as
// [ErrOutcomeUnknown] only when the client's timeout has passed.
//
// # Time
//
// Durations are [time.Duration], moments [time.Time]; the zero value means "not set", which is the
// default that each field names. Where zero has a meaning of its own, as for [PushOptions.TTL],
// [None] stands for it.
package jobline
