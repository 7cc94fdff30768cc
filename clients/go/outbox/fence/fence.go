// Package fence gives handlers exactly-once effects in a database: the transaction of one delivery of a
// job passes, all others are refused.
//
//	fences := fence.Table{Dialect: outbox.Postgres}
//	jobline.Handle(worker, "payments", "", func(ctx context.Context, job *jobline.Job[Payment]) (jobline.NoResult, error) {
//		tx, err := db.BeginTx(ctx, nil)
//		...
//		if err := fences.Pass(ctx, tx, job.LeasedJob); errors.Is(err, fence.ErrDone) {
//			return jobline.NoResult{}, nil // an earlier delivery did it, and its ack was lost
//		} else if err != nil {
//			return jobline.NoResult{}, err
//		}
//		... // the effects, in tx
//		return jobline.NoResult{}, tx.Commit()
//	})
//
// The fence is a row of the job in the same transaction as its effects, so there is one exactly if they
// were committed.
package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox/internal/given"
	"github.com/jobline/jobline/clients/go/outbox/internal/sqldialect"
)

// ErrDone says that the effects of the job were committed by this or an earlier delivery: complete the
// job without them.
var ErrDone = errors.New("fence: the effects of this job were committed before")

// ErrOvertaken says that a later delivery has passed: this one has lost its lease, and what it returns is
// dropped. Roll back.
var ErrOvertaken = errors.New("fence: a later delivery of this job has passed")

const (
	// The step of a handler that has one transaction.
	stepDefault  = "effect"
	stepBytesMax = 200
)

// Table is a table of fences, beside the data that the handlers change. The zero value is jobline_fence in
// PostgreSQL. The table is the same as that of jobline.outbox for Python.
type Table struct {
	// Name of the table, default jobline_fence.
	Name string
	// Dialect of its database.
	Dialect sqldialect.Dialect
}

const (
	// One row per job, whose step is '', with the newest delivery that has passed; and one per step that has passed.
	// job: id and time of the push, as another server, or a new one in place of an old one, has the same ids.
	createTable = `CREATE TABLE IF NOT EXISTS {table} (
  job TEXT NOT NULL,
  step TEXT NOT NULL,
  delivery {number} NOT NULL,
  passed_at_ms {number} NOT NULL,
  PRIMARY KEY (job, step)
)`
	// With < instead of <= the second transaction of one delivery would be refused.
	passDelivery = `INSERT INTO {table} (job, step, delivery, passed_at_ms) VALUES ($1, '', $2, $3)
ON CONFLICT (job, step) DO UPDATE SET delivery = excluded.delivery, passed_at_ms = excluded.passed_at_ms
WHERE {alone}.delivery <= excluded.delivery`
	takeStep = `INSERT INTO {table} (job, step, delivery, passed_at_ms) VALUES ($1, $2, $3, $4)
ON CONFLICT (job, step) DO NOTHING`
	deleteOld = `DELETE FROM {table} WHERE job IN (SELECT job FROM {table} WHERE step = '' AND passed_at_ms < $1)`
)

func (t Table) spell(statement string) string {
	return t.Dialect.Spell(sqldialect.Table(t.Name, "jobline_fence"), statement)
}

// Schema returns the statement that creates the table, for a program's migrations.
func (t Table) Schema() string { return t.spell(createTable) }

// Pass returns nil if the effects of the job are to be done in this transaction, before its other writes;
// ErrDone or ErrOvertaken if they must not be. While another delivery is between its Pass and its commit, it
// waits for that one. A job that is retried by hand after it completed is done as well.
func (t Table) Pass(ctx context.Context, tx *sql.Tx, job *jobline.LeasedJob) error {
	return t.PassStep(ctx, tx, job, stepDefault)
}

// PassStep is Pass for a handler with several transactions: the step, 1 … 200 bytes, says which one it is.
func (t Table) PassStep(ctx context.Context, tx *sql.Tx, job *jobline.LeasedJob, step string) error {
	if err := given.Transaction(tx); err != nil {
		return err
	}
	return t.PassBy(job, step, func(statement string, args ...any) (int64, error) {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
}

// PassBy is PassStep for other database libraries: execute makes a statement in the transaction, and returns how
// many rows it has changed.
func (t Table) PassBy(job *jobline.LeasedJob, step string, execute func(statement string, args ...any) (int64, error)) error {
	if err := given.NotNil("job", job, "is nil: give that of the handler"); err != nil {
		return err
	}
	if step == "" || len(step) > stepBytesMax {
		return jobline.InvalidArgument("step", fmt.Sprintf("must be 1 to %d bytes, and is %d", stepBytesMax, len(step)))
	}
	key, delivery, now := keyOf(job), int64(job.Delivery), time.Now().UnixMilli()
	count, err := execute(t.spell(passDelivery), key, delivery, now)
	switch {
	case err != nil:
		return fmt.Errorf("fence: %w", err)
	case count == 0:
		return ErrOvertaken
	}
	count, err = execute(t.spell(takeStep), key, step, delivery, now)
	switch {
	case err != nil:
		return fmt.Errorf("fence: %w", err)
	case count == 0:
		return ErrDone
	}
	return nil
}

// keyOf returns what names a job: its id, and when it was pushed, as ids begin anew with a new data directory.
func keyOf(job *jobline.LeasedJob) string {
	at := int64(0)
	if pushed := job.PushedAt(); !pushed.IsZero() {
		at = pushed.UnixMilli()
	}
	return fmt.Sprintf("%d@%d", job.ID, at)
}

// Clean deletes the rows of jobs that passed last before so long, and returns how many there were. A job of which a
// delivery may still come must not be among them: 30 days are plenty.
func (t Table) Clean(ctx context.Context, tx *sql.Tx, olderThan time.Duration) (int64, error) {
	if err := given.Transaction(tx); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, t.spell(deleteOld), time.Now().Add(-olderThan).UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("fence: %w", err)
	}
	return result.RowsAffected()
}
