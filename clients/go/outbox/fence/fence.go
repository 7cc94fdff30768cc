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

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox/internal/sqldialect"
)

// ErrDone says that the effects of the job were committed by this or an earlier delivery: complete the
// job without them.
var ErrDone = errors.New("fence: the effects of this job were committed before")

// ErrOvertaken says that a later delivery has committed the effects: this one has lost its lease, and
// what it returns is dropped.
var ErrOvertaken = errors.New("fence: a later delivery of this job has committed its effects")

// Table is a table of fences, beside the data that the handlers change. The zero value is
// jobline_fences in PostgreSQL.
type Table struct {
	// Name of the table, default jobline_fences.
	Name string
	// Dialect of its database.
	Dialect sqldialect.Dialect
}

const (
	createTable = `CREATE TABLE IF NOT EXISTS {table} (
  job_id BIGINT PRIMARY KEY,
  delivery BIGINT NOT NULL,
  passed_at {moment} NOT NULL DEFAULT CURRENT_TIMESTAMP
)`
	insertFence = `INSERT INTO {table} (job_id, delivery) VALUES ($1, $2) ON CONFLICT (job_id) DO NOTHING`
	readFence   = `SELECT delivery FROM {table} WHERE job_id = $1`
)

func (t Table) spell(statement string) string {
	return t.Dialect.Spell(sqldialect.Table(t.Name, "jobline_fences"), statement)
}

// Schema returns the statement that creates the table, for a program's migrations. Rows whose passed_at
// is older than any delivery of a job may come may be deleted.
func (t Table) Schema() string { return t.spell(createTable) }

// Statements returns the statements that Pass makes, for other database libraries: one that inserts
// the fence (job id, delivery), and one that reads the delivery which passed (job id) if none was
// inserted. Refusal says what that means.
func (t Table) Statements() (insert, read string) { return t.spell(insertFence), t.spell(readFence) }

// Pass returns nil if the effects of the job are to be done in this transaction, ErrDone or
// ErrOvertaken if they must not be. While another delivery is between its Pass and its commit, it
// waits for that one. A job that is retried by hand after it completed is done as well.
func (t Table) Pass(ctx context.Context, tx *sql.Tx, job *jobline.LeasedJob) error {
	insert, read := t.Statements()
	result, err := tx.ExecContext(ctx, insert, int64(job.ID), int64(job.Delivery))
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if count, err := result.RowsAffected(); err != nil || count == 1 {
		return err
	}
	var passed int64
	if err := tx.QueryRowContext(ctx, read, int64(job.ID)).Scan(&passed); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return Refusal(job, passed)
}

// Refusal returns why a job does not pass, by the delivery that has.
func Refusal(job *jobline.LeasedJob, passed int64) error {
	if uint64(passed) > job.Delivery {
		return ErrOvertaken
	}
	return ErrDone
}
