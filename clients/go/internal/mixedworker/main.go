// Command mixedworker is the worker of this client among those of other languages, for
// tests/faults/test_three_languages.py: mixedworker ADDRESS QUEUE RECORD. The payload is how many
// milliseconds a job takes.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

func main() {
	address, queue, path := os.Args[1], os.Args[2], os.Args[3]
	record, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	worker, err := jobline.NewWorker(address, &jobline.WorkerOptions{
		Concurrency: 4, StopSignals: []os.Signal{syscall.SIGTERM},
	})
	if err != nil {
		panic(err)
	}
	jobline.Handle(worker, queue, "", func(ctx context.Context, job *jobline.Job[int]) (string, error) {
		note := func(what string) {
			_, _ = fmt.Fprintf(record, "%s %d %d %d\n", what, job.ID, job.Delivery, time.Now().UnixMilli())
		}
		note("begin")
		select {
		case <-time.After(time.Duration(job.Payload) * time.Millisecond):
		case <-ctx.Done():
			note("stop")
			return "", ctx.Err()
		}
		note("end")
		return "go", nil
	})
	if err := worker.Run(context.Background()); err != nil {
		panic(err)
	}
}
