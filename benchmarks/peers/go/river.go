package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPeer is River's tables in a PostgreSQL; its address is a connection string.
type riverPeer struct {
	target
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// As River's own benchmark has it: many workers, and no pause between two fetches.
const (
	riverWorkers  = 2_000
	riverCooldown = 2 * time.Millisecond
)

// What PostgreSQL answers while it starts: cannot_connect_now.
const pgStarting = "57P03"

type riverArgs struct {
	Payload string `json:"payload"`
}

func (riverArgs) Kind() string { return "bench" }

func newRiver(ctx context.Context, to target) (peer, error) {
	pool, err := pgxpool.New(ctx, to.address)
	if err != nil {
		return nil, err
	}
	if err := started(ctx, pool); err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: silent()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	client, err := river.NewClient(driver, &river.Config{Logger: silent()})
	return &riverPeer{to, pool, client}, err
}

// started returns when the server takes connections: it listens before that.
func started(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		err := pool.Ping(ctx)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != pgStarting {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (p *riverPeer) caller(context.Context) (caller, error) { return p, nil }

func (p *riverPeer) push(ctx context.Context) error {
	_, err := p.client.Insert(ctx, riverArgs{string(payload)}, &river.InsertOpts{Queue: p.queue})
	return err
}

func (p *riverPeer) bulk(ctx context.Context, jobs int) error {
	params := make([]river.InsertManyParams, jobs)
	for i := range params {
		params[i] = river.InsertManyParams{
			Args: riverArgs{string(payload)}, InsertOpts: &river.InsertOpts{Queue: p.queue},
		}
	}
	_, err := p.client.InsertManyFast(ctx, params)
	return err
}

func (p *riverPeer) waiting(ctx context.Context) (left int64, err error) {
	row := p.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE queue = $1 AND state <> 'completed'", p.queue)
	return left, row.Scan(&left)
}

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	left *countdown
}

func (w *riverWorker) Work(context.Context, *river.Job[riverArgs]) error {
	w.left.tick()
	return nil
}

func (p *riverPeer) drain(ctx context.Context, jobs int64) error {
	left := newCountdown(jobs)
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{left: left})
	client, err := river.NewClient(riverpgxv5.New(p.pool), &river.Config{
		Logger: silent(), Workers: workers,
		FetchCooldown: riverCooldown, FetchPollInterval: 10 * riverCooldown,
		Queues: map[string]river.QueueConfig{p.queue: {MaxWorkers: riverWorkers}},
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	return left.wait(ctx) // the last completions are written while the queue is counted
}
