// Package pgxoutbox uses outboxes and fences in transactions of pgx.
package pgxoutbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox"
	"github.com/jobline/jobline/clients/go/outbox/fence"
	"github.com/jobline/jobline/clients/go/outbox/internal/given"
)

// Execer is a transaction to write a row in: pgx.Tx, *pgx.Conn or *pgxpool.Pool.
type Execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Push writes a job into an outbox, in the caller's transaction, as outbox.Table.Push does.
func Push(ctx context.Context, tx Execer, table outbox.Table, queue string, payload any, options *jobline.PushOptions) (string, error) {
	if err := given.Transaction(tx); err != nil {
		return "", err
	}
	statement, id, args, err := table.Statement(queue, payload, options)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, statement, args...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return id, nil
}

// Pass lets the transaction of a handler's effects pass a fence, as fence.Table.Pass does.
func Pass(ctx context.Context, tx pgx.Tx, table fence.Table, job *jobline.LeasedJob) error {
	return PassStep(ctx, tx, table, job, "effect")
}

// PassStep lets one of several transactions of a handler pass, as fence.Table.PassStep does.
func PassStep(ctx context.Context, tx pgx.Tx, table fence.Table, job *jobline.LeasedJob, step string) error {
	if err := given.Transaction(tx); err != nil {
		return err
	}
	return table.PassBy(job, step, func(statement string, args ...any) (int64, error) {
		tag, err := tx.Exec(ctx, statement, args...)
		return tag.RowsAffected(), err
	})
}
