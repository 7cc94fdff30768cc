package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// Pusher is the part of a *jobline.Client that a relay needs.
type Pusher interface {
	PushMany(ctx context.Context, queue string, jobs []jobline.NewJob, options *jobline.PushManyOptions) ([]jobline.Pushed, error)
}

// Relay pushes the rows of an outbox. Several may run, in any processes: each row is pushed at least
// once, and stored as a job once.
type Relay struct {
	// Table is the outbox, DB its database: over pgx, stdlib.OpenDBFromPool makes one of a pool.
	Table Table
	DB    *sql.DB
	// Client pushes.
	Client Pusher
	// BatchSize is how many rows are pushed at a time, ≤ 1,000; default 500.
	BatchSize int
	// Interval is the pause after a round that found no full batch; default 1 s.
	Interval time.Duration
	// Logger gets rounds that failed, and rows that were refused; default slog.Default.
	Logger *slog.Logger
}

// Run pushes rows until ctx ends; it returns nil then. What fails is tried again. A row that the server
// refuses for good stays in the table with the error, and does not hold up the others.
func (r *Relay) Run(ctx context.Context) error {
	interval := r.Interval
	if interval <= 0 {
		interval = time.Second
	}
	log := r.Logger
	if log == nil {
		log = slog.Default()
	}
	for ctx.Err() == nil {
		count, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("the outbox was not pushed; trying again", "error", err)
		}
		if err == nil && count == r.batchSize() {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return nil
}

func (r *Relay) batchSize() int {
	if r.BatchSize <= 0 || r.BatchSize > 1_000 {
		return 500
	}
	return r.BatchSize
}

// Once pushes one batch of rows, and returns how many rows it took.
func (r *Relay) Once(ctx context.Context) (int, error) {
	tx, err := r.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	rows, err := r.read(ctx, tx)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	for start := 0; start < len(rows); {
		end := start + 1
		for end < len(rows) && rows[end].queue == rows[start].queue && rows[end].bad == nil && rows[start].bad == nil {
			end++
		}
		if err := r.push(ctx, tx, rows[start:end]); err != nil {
			// What was pushed before is pushed again, under its keys.
			return 0, err
		}
		start = end
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("outbox: %w", err)
	}
	return len(rows), nil
}

type row struct {
	id    int64
	queue string
	job   jobline.NewJob
	bad   error // it cannot be read
}

func (r *Relay) read(ctx context.Context, tx *sql.Tx) ([]row, error) {
	found, err := tx.QueryContext(ctx, r.Table.spell(selectRows), r.batchSize())
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = found.Close() }()
	var rows []row
	for found.Next() {
		var one row
		var key string
		var payload, options []byte
		if err := found.Scan(&one.id, &key, &one.queue, &payload, &options); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		one.bad = json.Unmarshal(options, &one.job.Options)
		one.job.Payload, one.job.Options.JobKey = payload, key
		rows = append(rows, one)
	}
	return rows, found.Err()
}

// push pushes rows of one queue, and deletes them. A refusal of one of them is found by pushing each by
// itself.
func (r *Relay) push(ctx context.Context, tx *sql.Tx, rows []row) error {
	if rows[0].bad != nil {
		return r.settle(ctx, tx, rows[0].id, rows[0].bad)
	}
	jobs := make([]jobline.NewJob, len(rows))
	for i := range rows {
		jobs[i] = rows[i].job
	}
	pushed, err := r.Client.PushMany(ctx, rows[0].queue, jobs, &jobline.PushManyOptions{NotAtomic: true})
	if isForGood(err) && len(rows) > 1 {
		for i := range rows {
			if err := r.push(ctx, tx, rows[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil && !isForGood(err) {
		return err
	}
	for i, one := range rows {
		why := err
		if why == nil {
			why = pushed[i].Err
		}
		if err := r.settle(ctx, tx, one.id, why); err != nil {
			return err
		}
	}
	return nil
}

func (r *Relay) settle(ctx context.Context, tx *sql.Tx, id int64, refusal error) error {
	statement, args := r.Table.spell(deleteRow), []any{id}
	if refusal != nil {
		statement, args = r.Table.spell(refuseRow), []any{id, refusal.Error()}
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// isForGood reports whether a push was refused, and would be refused again.
func isForGood(err error) bool {
	var refused *jobline.Error
	if !errors.As(err, &refused) || !refused.Definite() || refused.Retryable() {
		return false
	}
	for _, passing := range []error{jobline.ErrClosed, jobline.ErrPermissionDenied, jobline.ErrUnauthenticated, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}
