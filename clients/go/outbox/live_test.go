package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/outbox"
	"github.com/jobline/jobline/clients/go/outbox/fence"
)

// TestRowsBecomeJobsWithOneEffectEach goes all the way: rows, a relay, a real server, a worker whose
// handler commits its effect and then fails, as one whose ack is lost.
func TestRowsBecomeJobsWithOneEffectEach(t *testing.T) {
	server := testserver.New(t)
	client, err := jobline.New(server.Address, &jobline.ClientOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			const jobs = 20
			for range jobs {
				options := &jobline.PushOptions{Backoff: &jobline.Backoff{Fixed: true, Base: time.Millisecond}}
				if _, err := table(name).Push(t.Context(), db, name, 1, options); err != nil {
					t.Fatal(err)
				}
			}
			worker, err := jobline.NewWorker(server.Address, &jobline.WorkerOptions{Concurrency: 1, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{}, jobs)
			jobline.Handle(worker, name, "", func(ctx context.Context, job *jobline.Job[int]) (jobline.NoResult, error) {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return jobline.NoResult{}, err
				}
				defer func() { _ = tx.Rollback() }()
				if err := fences(name).Pass(ctx, tx, job.LeasedJob); errors.Is(err, fence.ErrDone) {
					done <- struct{}{}
					return jobline.NoResult{}, nil
				} else if err != nil {
					return jobline.NoResult{}, err
				}
				if _, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (1)"); err != nil {
					return jobline.NoResult{}, err
				}
				return jobline.NoResult{}, errors.Join(tx.Commit(), errors.New("its ack is lost"))
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			relay := &outbox.Relay{Table: table(name), DB: db, Client: client, Interval: time.Millisecond, BatchSize: 7, Logger: quiet}
			go func() { ended <- relay.Run(ctx) }()
			go func() { ended <- worker.Run(ctx) }()
			for range jobs {
				<-done
			}
			cancel()
			if err := errors.Join(<-ended, <-ended); err != nil {
				t.Fatal(err)
			}
			var effects int
			if err := db.QueryRow("SELECT count(*) FROM effects").Scan(&effects); err != nil || effects != jobs || rowsLeft(t, db, "true") != 0 {
				t.Errorf("%d effects: %v", effects, err)
			}
		})
	}
}
