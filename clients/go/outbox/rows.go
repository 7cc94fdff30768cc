package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox/internal/sqldialect"
)

// row is a row of the table, with its job; bad says why that cannot be read.
type row struct {
	id, queue string
	job       *joblinev1.NewJob
	bad       error
}

// read returns the next rows, locked where the database can.
func (r *Relay) read(ctx context.Context, tx *sql.Tx) ([]row, error) {
	rows, err := r.readSizes(ctx, tx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	ids, places := make([]any, len(rows)), make(map[string]int, len(rows))
	for i, one := range rows {
		ids[i], places[one.id] = one.id, i
	}
	statement := r.Table.spell(selectRows, "{ids}", sqldialect.Places(1, len(ids)))
	found, err := tx.QueryContext(ctx, statement, ids...)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var id string
		var data []byte
		if err := found.Scan(&id, &data); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		one := &rows[places[id]]
		one.job = &joblinev1.NewJob{}
		if err := proto.Unmarshal(data, one.job); err != nil {
			one.bad = fmt.Errorf("its job cannot be read: %w", err)
		}
		one.job.JobKey = id
	}
	return rows, found.Err()
}

// readSizes returns the next rows without their jobs, as many as one round may carry; one always fits. The queue whose
// first row is the oldest comes first. By the index that costs a step for each queue, and none for rows of held ones.
func (r *Relay) readSizes(ctx context.Context, tx *sql.Tx) ([]row, error) {
	limit := r.BatchSize
	if limit <= 0 || limit > batchMax {
		limit = batchDefault
	}
	next := &round{tx: tx, table: r.Table, left: limit}
	held := r.heldQueues()
	isIndexed, err := r.Table.hasIndex(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !isIndexed {
		others := ""
		if len(held) > 0 {
			others = " AND queue NOT IN (" + sqldialect.Places(1, len(held)) + ")"
		}
		err := next.read(ctx, others, held...)
		return next.rows, err
	}
	queues, err := r.waitingQueues(ctx, tx)
	for i := 0; i < len(queues) && next.left > 0 && err == nil; i++ {
		if !slices.Contains(held, any(queues[i])) {
			err = next.read(ctx, " AND queue = $1", queues[i])
		}
	}
	return next.rows, err
}

// waitingQueues returns the queues that have rows which wait, by their first row.
func (r *Relay) waitingQueues(ctx context.Context, tx *sql.Tx) ([]string, error) {
	found, err := tx.QueryContext(ctx, r.Table.spell(selectQueues))
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = found.Close() }()
	var queues []string
	for found.Next() {
		var queue string
		if err := found.Scan(&queue); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		queues = append(queues, queue)
	}
	return queues, found.Err()
}

// round is what is read for one round, up to left rows more.
type round struct {
	tx          *sql.Tx
	table       Table
	rows        []row
	bytes, left int
}

// read adds the first rows of some queues.
func (r *round) read(ctx context.Context, queues string, args ...any) error {
	statement := r.table.spell(selectSizes, "{queues}", queues, "{limit}", strconv.Itoa(r.left))
	found, err := r.tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var one row
		var size int
		if err := found.Scan(&one.id, &one.queue, &size); err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		r.bytes += size
		if len(r.rows) > 0 && r.bytes > roundBytesMax {
			r.left = 0
			return nil
		}
		r.rows, r.left = append(r.rows, one), r.left-1
	}
	return found.Err()
}

// heldQueues returns the queues that are passed over.
func (r *Relay) heldQueues() []any {
	var queues []any
	for queue, until := range r.held {
		if time.Now().After(until) {
			delete(r.held, queue)
			continue
		}
		queues = append(queues, queue)
	}
	return queues
}
