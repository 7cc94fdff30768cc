package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox/internal/given"
)

const (
	batchDefault = 500
	batchMax     = 1_000
	// Bytes of the jobs of one round, well below the server's 16 MiB a call unless one alone is larger.
	roundBytesMax = 8 << 20
	// Time for which the rows of a queue that has no room wait, unless the server says how long; and at most.
	holdTime    = time.Second
	holdTimeMax = 30 * time.Second
)

// Pusher is the part of a *jobline.Client that a relay needs. One that wraps a client with a codec must also have its
// HasCodec.
type Pusher interface {
	PushMessages(ctx context.Context, queue string, jobs []*joblinev1.NewJob) ([]jobline.Pushed, error)
}

// Relay pushes the rows of an outbox. Several may run, in any processes, Python's among them: each row is pushed at
// least once, and stored as a job once, unless a relay dies between a push and the deletion, and none runs for the
// next 24 hours, after which the server forgets keys. Rows of a queue are pushed in the order of their ids, as one
// process has written them; with several relays that order holds within a batch alone.
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

	held     map[string]time.Time // queues that have no room, until when they are passed over
	isHeldUp bool                 // whether the last round found one, whose rows may have taken the place of others
}

// Run pushes rows until ctx ends; it returns nil then. What fails is tried again. A row that the server
// refuses for good stays in the table with the error, and does not hold up the others; a queue that is full holds
// up its own rows alone. A relay without DB or Client logs that, and ends. One Run at a time of one Relay.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		r.log().Error("the outbox is not pushed", "error", err) // many start it by go, and see no error
		return err
	}
	interval := r.Interval
	if interval <= 0 {
		interval = time.Second
	}
	for ctx.Err() == nil {
		count, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			r.log().Warn("the outbox was not pushed; trying again", "error", err)
		}
		if err == nil && (count > 0 || r.isHeldUp) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return nil
}

func (r *Relay) check() error {
	return cmp.Or(given.NotNil("DB", r.DB, "is nil: give the database of the table"),
		given.NotNil("Client", r.Client, "is nil: give a client of Jobline"))
}

func (r *Relay) log() *slog.Logger {
	if r.Logger == nil {
		return slog.Default()
	}
	return r.Logger
}

// Once pushes one batch of rows, and returns how many rows it has dealt with.
func (r *Relay) Once(ctx context.Context) (int, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	r.isHeldUp = false
	tx, err := r.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	rows, err := r.read(ctx, tx)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	count := 0
	for _, some := range byQueue(rows) {
		err = r.push(ctx, tx, some)
		if err != nil && !r.hold(some[0].queue, err) {
			break
		}
		if err == nil {
			count += len(some)
		}
		err = nil
	}
	// What other queues have taken is settled, whatever came of this one. Rows whose deletion is lost are pushed
	// again, under their keys.
	if failed := tx.Commit(); failed != nil {
		return 0, fmt.Errorf("outbox: %w", failed)
	}
	return count, err
}

// byQueue returns rows by queue, in their order.
func byQueue(rows []row) [][]row {
	var parts [][]row
	places := map[string]int{}
	for _, one := range rows {
		place, isThere := places[one.queue]
		if !isThere {
			place = len(parts)
			places[one.queue], parts = place, append(parts, nil)
		}
		parts[place] = append(parts[place], one)
	}
	return parts
}

// push pushes rows of one queue, and deletes them. A refusal of one of them is found by pushing each by
// itself. It returns the first refusal that is only for now; the rows of those stay.
func (r *Relay) push(ctx context.Context, tx *sql.Tx, rows []row) error {
	var good []row
	var jobs []*joblinev1.NewJob
	for _, one := range rows {
		if one.bad != nil {
			if err := r.settle(ctx, tx, one, one.bad); err != nil {
				return err
			}
			continue
		}
		good, jobs = append(good, one), append(jobs, one.job)
	}
	if len(good) == 0 {
		return nil
	}
	pushed, err := r.Client.PushMessages(ctx, good[0].queue, jobs)
	if isForGood(err) && len(good) > 1 {
		for i := range good {
			if err := r.push(ctx, tx, good[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil && !isForGood(err) {
		return err
	}
	var later error
	for i, one := range good {
		why := err
		if why == nil {
			why = pushed[i].Err
		}
		if r.isRepeated(why) {
			r.log().Debug("a job of the outbox was stored already, under an earlier key of the codec", "id", one.id, "queue", one.queue)
			why = nil
		}
		if isForNow(why) {
			if later == nil {
				later = why
			}
			continue
		}
		if err := r.settle(ctx, tx, one, why); err != nil {
			return err
		}
	}
	return later
}

func (r *Relay) settle(ctx context.Context, tx *sql.Tx, one row, refusal error) error {
	statement, args := r.Table.spell(deleteRow), []any{one.id}
	if refusal != nil {
		r.log().Error("the server refuses a job of the outbox for good", "id", one.id, "queue", one.queue, "error", refusal)
		statement, args = r.Table.spell(refuseRow), []any{refusal.Error(), one.id}
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// hold passes over the rows of a queue for a time, if an error is about the queue.
func (r *Relay) hold(queue string, err error) bool {
	if !isFull(err) && !errors.Is(err, jobline.ErrPermissionDenied) && !errors.Is(err, jobline.ErrQueueNotCreated) {
		return false
	}
	pause := holdTime
	if refused := (*jobline.Error)(nil); errors.As(err, &refused) && refused.RetryAfter > 0 {
		pause = min(refused.RetryAfter, holdTimeMax)
	}
	if r.held == nil {
		r.held = map[string]time.Time{}
	}
	r.held[queue], r.isHeldUp = time.Now().Add(pause), true
	r.log().Warn("rows of the outbox wait for their queue", "queue", queue, "for", pause, "error", err)
	return true
}

// passing are errors that are no matter of the job itself, though the same call would be refused again.
var passing = []error{
	jobline.ErrClosed, jobline.ErrPermissionDenied, jobline.ErrUnauthenticated, jobline.ErrQueueNotCreated,
	context.Canceled, context.DeadlineExceeded,
}

func isPassing(err error) bool {
	return slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) })
}

func isFull(err error) bool {
	return errors.Is(err, jobline.ErrResourceExhausted) && !errors.Is(err, jobline.ErrTooLarge)
}

// isForGood reports whether a push was refused, and would be refused again.
func isForGood(err error) bool {
	var refused *jobline.Error
	return errors.As(err, &refused) && refused.Definite() && !refused.Retryable() && !isPassing(err)
}

// isRepeated reports whether a refusal means that the job is stored. Its key is the id of the row, so another payload
// is the same job: sealed anew, as each try does, after the key of the codec has changed.
func (r *Relay) isRepeated(err error) bool {
	client, isOne := r.Client.(interface{ HasCodec() bool })
	return isOne && client.HasCodec() && errors.Is(err, jobline.ErrIdempotencyMismatch)
}

// isForNow reports whether one job of a push was not stored, and may be later.
func isForNow(err error) bool {
	return isFull(err) || isPassing(err) || jobline.Retryable(err) || errors.Is(err, jobline.ErrUnavailable) ||
		errors.Is(err, jobline.ErrOutcomeUnknown)
}
