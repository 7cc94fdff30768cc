package jobline_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
)

// mute is an error that cannot be asked.
type mute struct{}

func (mute) Error() string { panic("no words") }

// oddEnds are ways in which a handler ends, and what the error of its job says.
var oddEnds = map[string]struct {
	end  func() error
	says string
}{
	"panic with nil":                         {func() error { panic(nil) }, "nil argument"}, //nolint:govet // as others do by mistake
	"goexit":                                 {func() error { runtime.Goexit(); return nil }, "ended its goroutine"},
	"panic with an error":                    {func() error { panic(io.ErrUnexpectedEOF) }, "unexpected EOF"},
	"panic with an outcome":                  {func() error { panic(jobline.Dead("so be it")) }, "so be it"},
	"panic with no text":                     {func() error { panic("\xff\xfe\x00") }, "panic: "},
	"panic with 8 MiB":                       {func() error { panic(strings.Repeat("x", 8<<20)) }, "xxx"},
	"panic with a mute":                      {func() error { panic(mute{}) }, "no words"},
	"a mute":                                 {func() error { return mute{} }, "no words"},
	"a wrapped mute":                         {func() error { return errors.Join(io.EOF, mute{}) }, "no words"},
	"retry for a mute":                       {func() error { return jobline.Retry(0).Because(mute{}) }, "no words"},
	"panic with a nil error of this package": {func() error { panic((*jobline.Error)(nil)) }, "*jobline.Error"},
	"a nil error of this package":            {func() error { return (*jobline.Error)(nil) }, "*jobline.Error"},
	"a nil outcome":                          {func() error { return (*jobline.Outcome)(nil) }, "*jobline.Outcome"},
}

// However a handler ends, its job has failed, and its worker goes on.
func TestOddEndsOfHandlersFailTheAttemptAlone(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{Concurrency: 2})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[string]) (int, error) {
		return 1, oddEnds[job.Payload].end()
	})
	options := &jobline.BatchHandlerOptions{Size: 1}
	jobline.HandleBatch(worker, queue, "batch", options, func(_ context.Context, batch *jobline.Batch[string, int]) error {
		batch.Fail(batch.Jobs[0], oddEnds[batch.Jobs[0].Payload].end())
		return nil
	})
	start(t, worker)
	for _, name := range []string{"", "batch"} {
		for payload, odd := range oddEnds {
			_, err := jobline.PushAndWait[int](ctx, client, queue, payload, &jobline.PushOptions{Name: name, MaxAttempts: 1})
			if !errors.Is(err, jobline.ErrJobDead) || !strings.Contains(err.Error(), odd.says) || len(err.Error()) > 8<<10 {
				t.Errorf("%s, %s: %.200v", name, payload, err)
			}
		}
	}
}

// An error has no stack in Go: its line in the log says nothing of one.
func TestALineOfAFailedAttemptHasAStackOnlyAfterAPanic(t *testing.T) {
	client, ctx := newClient(t, nil), newContext(t)
	for payload, hasStack := range map[string]bool{"an error": false, "a panic": true} {
		queue, log := newQueue(t), &lines{}
		worker := newWorker(t, jobline.WorkerOptions{Logger: slog.New(slog.NewTextHandler(log, nil))})
		jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[string]) (int, error) {
			if job.Payload == "a panic" {
				panic(io.EOF)
			}
			return 1, io.EOF
		})
		start(t, worker)
		_, err := jobline.PushAndWait[int](ctx, client, queue, payload, &jobline.PushOptions{MaxAttempts: 1})
		if !errors.Is(err, jobline.ErrJobDead) || !log.has("attempt failed") || log.has("stack=") != hasStack {
			t.Errorf("%s: %v\n%s", payload, err, &log.text)
		}
	}
}
