package outbox

import (
	"context"
	"database/sql"
	"fmt"
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

// readSizes returns the next rows without their jobs, as many as one round may carry; one always fits.
func (r *Relay) readSizes(ctx context.Context, tx *sql.Tx) ([]row, error) {
	limit := r.BatchSize
	if limit <= 0 || limit > batchMax {
		limit = batchDefault
	}
	held, others := r.heldQueues(), ""
	if len(held) > 0 {
		others = " AND queue NOT IN (" + sqldialect.Places(1, len(held)) + ")"
	}
	found, err := tx.QueryContext(ctx, r.Table.spell(selectSizes, "{others}", others, "{limit}", strconv.Itoa(limit)), held...)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	defer func() { _ = found.Close() }()
	var rows []row
	total := 0
	for found.Next() {
		var one row
		var size int
		if err := found.Scan(&one.id, &one.queue, &size); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		total += size
		if len(rows) > 0 && total > roundBytesMax {
			break
		}
		rows = append(rows, one)
	}
	return rows, found.Err()
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
