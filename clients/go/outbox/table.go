package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	jobline "github.com/jobline/jobline/clients/go"
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
	// What a relay reads of the rows that wait, by id: however many refused rows are before them, and however large
	// the jobs are. A relay works without it, too.
	createIndex = `CREATE INDEX IF NOT EXISTS {index} ON {indexed} (id, queue, size)
  WHERE error IS NULL`
	insertRow   = `INSERT INTO {table} (id, queue, job, size, written_at_ms) VALUES ($1, $2, $3, $4, $5)`
	selectSizes = `SELECT id, queue, size FROM {table} WHERE error IS NULL{others} ORDER BY id LIMIT {limit}{skip_locked}`
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
// relay works without it, and reads all rows with an error in each round.
func (t Table) IndexSchema() string {
	name := sqldialect.Table(t.Name, "jobline_outbox")
	schema, alone, isQualified := strings.Cut(name, ".")
	if !isQualified {
		schema, alone = "", name
	}
	index := alone[:min(len(alone), 55)] + "_waiting" // PostgreSQL cuts names at 63 bytes
	// The schema is that of the table: SQLite wants it before the index's name, PostgreSQL before the table's.
	indexed := name
	if isQualified && t.Dialect == SQLite {
		index, indexed = schema+"."+index, alone
	}
	return t.spell(createIndex, "{index}", index, "{indexed}", indexed)
}

// Statement returns the statement that writes a row, and its arguments: for database libraries other
// than database/sql. The id is that of the row, and the key of the job. For the other arguments see Push.
func (t Table) Statement(queue string, payload any, options *jobline.PushOptions) (statement, id string, args []any, err error) {
	own := jobline.PushOptions{}
	if options != nil {
		own = *options
	}
	if own.JobKey != "" {
		return "", "", nil, fmt.Errorf("outbox: the key of a job in an outbox is the id of its row: %w", jobline.ErrInvalidArgument)
	}
	if own.Delay > 0 {
		own.RunAt, own.Delay = time.Now().Add(own.Delay), 0
	}
	message, err := jobline.MessageOf(payload, &own)
	if err != nil {
		return "", "", nil, err
	}
	data, err := proto.Marshal(message)
	switch {
	case err != nil:
		return "", "", nil, fmt.Errorf("outbox: %w", err)
	case len(data) > rowBytesMax:
		return "", "", nil, fmt.Errorf("outbox: a job has at most 11 MiB, not %d bytes: %w", len(data), jobline.ErrTooLarge)
	}
	id = newID()
	return t.spell(insertRow), id, []any{id, queue, data, len(data), time.Now().UnixMilli()}, nil
}

// Push writes a job into the outbox, in the caller's transaction, and returns the id of its row, which becomes the
// job's key. Payload and options are those of Client.Push, without JobKey and AckLevel; Delay counts from now.
func (t Table) Push(ctx context.Context, tx Execer, queue string, payload any, options *jobline.PushOptions) (string, error) {
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
	result, err := tx.ExecContext(ctx, t.spell(retryRows))
	if err != nil {
		return 0, fmt.Errorf("outbox: %w", err)
	}
	return result.RowsAffected()
}
