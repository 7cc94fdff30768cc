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
)

// Execer is a transaction to write a row in: pgx.Tx, *pgx.Conn or *pgxpool.Pool.
type Execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Push writes a job into an outbox, in the caller's transaction, as outbox.Table.Push does.
func Push(ctx context.Context, tx Execer, table outbox.Table, queue string, payload any, options *jobline.PushOptions) (string, error) {
	statement, key, args, err := table.Statement(queue, payload, options)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, statement, args...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return key, nil
}

// Pass lets the transaction of a handler's effects pass a fence, as fence.Table.Pass does.
func Pass(ctx context.Context, tx pgx.Tx, table fence.Table, job *jobline.LeasedJob) error {
	insert, read := table.Statements()
	tag, err := tx.Exec(ctx, insert, int64(job.ID), int64(job.Delivery))
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	var passed int64
	if err := tx.QueryRow(ctx, read, int64(job.ID)).Scan(&passed); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return fence.Refusal(job, passed)
}
