package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox/internal/given"
	"github.com/jobline/jobline/clients/go/outbox/internal/sqldialect"
)

// Dialect is how a database spells its statements.
type Dialect = sqldialect.Dialect

// The databases that are tested.
const (
	Postgres = sqldialect.Postgres
	SQLite   = sqldialect.SQLite
)

// The server's limit of a payload is 10 MiB; options are small beside it.
const rowBytesMax = 11 << 20

// Table is an outbox in a program's own database. The zero value is jobline_outbox in PostgreSQL. The table is the
// same as that of jobline.outbox for Python: programs of both may write rows, and a relay of either pushes them.
type Table struct {
	// Name of the table, default jobline_outbox.
	Name string
	// Dialect of its database.
	Dialect Dialect
}

// Execer is a transaction to write a row in: *sql.Tx, *sql.Conn or *sql.DB.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const (
	// A row is a job that is not pushed yet. job: the message jobline.v1.NewJob, without its key, which is id: a UUID
	// of version 7, so that rows are in the order in which they were written. error: why the server refuses
	// the job for good; such a row waits for somebody.
	createTable = `CREATE TABLE IF NOT EXISTS {table} (
  id TEXT NOT NULL PRIMARY KEY,
  queue TEXT NOT NULL,
  job {bytes} NOT NULL,
  size {number} NOT NULL,
  written_at_ms {number} NOT NULL,
  error TEXT
)`
	// What a relay reads of the rows that wait, by queue: however many rows of a full queue, or refused ones, are before
	// them, and however large the jobs are. A relay works without it, too.
	createIndex = `CREATE INDEX IF NOT EXISTS {index} ON {indexed} (queue, id, size)
  WHERE error IS NULL`
	// The rows that were refused, which are few among those that wait: without it, to look for them reads all rows.
	createFailedIndex = `CREATE INDEX IF NOT EXISTS {index} ON {indexed} (id)
  WHERE error IS NOT NULL`
	insertRow = `INSERT INTO {table} (id, queue, job, size, written_at_ms) VALUES ($1, $2, $3, $4, $5)`
	// The queues that have rows which wait, by the id of their first one. From one queue the index leads to the next,
	// so that this reads two entries for each queue; DISTINCT reads all of them.
	selectQueues = `WITH RECURSIVE queues(queue) AS (
  SELECT MIN(queue) FROM {table} WHERE error IS NULL
  UNION ALL
  SELECT (SELECT MIN(later.queue) FROM {table} AS later
    WHERE later.error IS NULL AND later.queue > queues.queue)
  FROM queues WHERE queues.queue IS NOT NULL
)
SELECT queue FROM queues WHERE queue IS NOT NULL
ORDER BY (SELECT MIN(waiting.id) FROM {table} AS waiting
  WHERE waiting.error IS NULL AND waiting.queue = queues.queue)`
	selectSizes = `SELECT id, queue, size FROM {table} WHERE error IS NULL{queues} ORDER BY id LIMIT {limit}{skip_locked}`
	selectRows  = `SELECT id, job FROM {table} WHERE id IN ({ids})`
	deleteRow   = `DELETE FROM {table} WHERE id = $1`
	refuseRow   = `UPDATE {table} SET error = $1 WHERE id = $2`
	retryRows   = `UPDATE {table} SET error = NULL WHERE error IS NOT NULL`
)

func (t Table) spell(statement string, more ...string) string {
	return t.Dialect.Spell(sqldialect.Table(t.Name, "jobline_outbox"), statement, more...)
}

// Schema returns the statement that creates the table, for a program's migrations.
func (t Table) Schema() string { return t.spell(createTable) }

// IndexSchema returns the statement that creates the index that a relay reads rows by, for a program's migrations. A
// relay works without it, and reads all rows with an error, and those of full queues, in each round.
func (t Table) IndexSchema() string { return t.spellIndex(createIndex, waitingIndex) }

// FailedIndexSchema returns the statement that creates the index that RetryFailed, and jobline.outbox for Python, find
// rows by that were refused, for a program's migrations. Without it they read all rows; a relay does not need it.
func (t Table) FailedIndexSchema() string { return t.spellIndex(createFailedIndex, failedIndex) }

func (t Table) spellIndex(statement, suffix string) string {
	schema, index, indexed := t.index(suffix)
	// The schema is that of the table: SQLite wants it before the index's name, PostgreSQL before the table's.
	if t.Dialect == SQLite {
		index = schema + index
	} else {
		indexed = schema + indexed
	}
	return t.spell(statement, "{index}", index, "{indexed}", indexed)
}

// What the names of the indexes end with.
const waitingIndex, failedIndex = "_queues", "_failed"

// index returns the schema of the table with its dot, if it is given, and the names of an index and of the table.
func (t Table) index(suffix string) (schema, index, indexed string) {
	name := sqldialect.Table(t.Name, "jobline_outbox")
	dot := strings.LastIndexByte(name, '.') + 1
	schema, indexed = name[:dot], name[dot:]
	return schema, indexed[:min(len(indexed), 55)] + suffix, indexed // PostgreSQL cuts names at 63 bytes
}

// hasIndex returns whether the table has the index that relays read by, finished and usable.
func (t Table) hasIndex(ctx context.Context, tx *sql.Tx) (bool, error) {
	schema, index, _ := t.index(waitingIndex)
	statement, args := `SELECT COUNT(*) FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid`, []any{schema + index}
	if t.Dialect == SQLite {
		statement, args = `SELECT COUNT(*) FROM `+schema+`sqlite_master WHERE type = 'index' AND lower(name) = lower(?1)`, []any{index}
	}
	var count int
	if err := tx.QueryRowContext(ctx, statement, args...).Scan(&count); err != nil {
		return false, fmt.Errorf("outbox: %w", err)
	}
	return count > 0, nil
}

// Statement returns the statement that writes a row, and its arguments: for database libraries other
// than database/sql. The id is that of the row, and the key of the job. For the other arguments see Push.
func (t Table) Statement(queue string, payload any, options *jobline.PushOptions) (statement, id string, args []any, err error) {
	message, err := messageOf(queue, payload, options)
	if err != nil {
		return "", "", nil, err
	}
	data, err := proto.Marshal(message)
	switch {
	case err != nil:
		return "", "", nil, jobline.InvalidArgument("options", err.Error())
	case len(data) > rowBytesMax:
		return "", "", nil, fmt.Errorf("outbox: a job has at most 11 MiB, not %d bytes: %w", len(data), jobline.ErrTooLarge)
	}
	id = newID()
	return t.spell(insertRow), id, []any{id, queue, data, len(data), time.Now().UnixMilli()}, nil
}

// messageOf returns a job as a row holds it: without a key, and with a moment in the place of a delay, which would
// count from when a relay comes by.
func messageOf(queue string, payload any, options *jobline.PushOptions) (*joblinev1.NewJob, error) {
	switch {
	case options != nil && options.JobKey != "":
		return nil, jobline.InvalidArgument("job_key", "the key of a job in an outbox is the id of its row")
	case options != nil && options.AckLevel != 0:
		return nil, jobline.InvalidArgument("ack_level", "a row is pushed by a relay, which does not wait for it alone")
	}
	message, err := jobline.MessageOf(queue, payload, options)
	if err != nil {
		return nil, err
	}
	if delay := message.GetDelay(); delay != nil {
		message.Start = &joblinev1.NewJob_RunAt{RunAt: timestamppb.New(time.Now().Add(delay.AsDuration()))}
	}
	return message, nil
}

// Push writes a job into the outbox, in the caller's transaction, and returns the id of its row, which becomes the
// job's key. Payload and options are those of Client.Push, without JobKey and AckLevel; Delay counts from now.
//
// It returns a *jobline.Error, as Client.Push does, for a job that no server would take, and writes nothing. What
// depends on the server, such as a limiter that does not exist, is found by the relay.
func (t Table) Push(ctx context.Context, tx Execer, queue string, payload any, options *jobline.PushOptions) (string, error) {
	if err := given.Transaction(tx); err != nil {
		return "", err
	}
	statement, id, args, err := t.Statement(queue, payload, options)
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return id, nil
}

// RetryFailed has the relay push those rows again that the server refused for good; it returns how many there are.
func (t Table) RetryFailed(ctx context.Context, tx Execer) (int64, error) {
	if err := given.Transaction(tx); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, t.spell(retryRows))
	if err != nil {
		return 0, fmt.Errorf("outbox: %w", err)
	}
	return result.RowsAffected()
}
