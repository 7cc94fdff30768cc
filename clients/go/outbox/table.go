package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

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

// Table is an outbox in a program's own database. The zero value is jobline_outbox in PostgreSQL.
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
	createTable = `CREATE TABLE IF NOT EXISTS {table} (
  id {serial},
  job_key TEXT NOT NULL,
  queue TEXT NOT NULL,
  payload {bytes} NOT NULL,
  options {bytes} NOT NULL,
  error TEXT
)`
	insertRow  = `INSERT INTO {table} (job_key, queue, payload, options) VALUES ($1, $2, $3, $4)`
	selectRows = `SELECT id, job_key, queue, payload, options FROM {table} WHERE error IS NULL ORDER BY id LIMIT $1{skip_locked}`
	deleteRow  = `DELETE FROM {table} WHERE id = $1`
	refuseRow  = `UPDATE {table} SET error = $2 WHERE id = $1`
)

func (t Table) spell(statement string) string {
	return t.Dialect.Spell(sqldialect.Table(t.Name, "jobline_outbox"), statement)
}

// Schema returns the statement that creates the table, for a program's migrations.
func (t Table) Schema() string { return t.spell(createTable) }

// Statement returns the statement that writes a row, and its arguments: for database libraries other
// than database/sql. The key is that of the job. For the other arguments see Push.
func (t Table) Statement(queue string, payload any, options *jobline.PushOptions) (statement, key string, args []any, err error) {
	data, contentType, err := jobline.Encode(payload)
	if err != nil {
		return "", "", nil, err
	}
	if data == nil {
		data = []byte{}
	}
	own := jobline.PushOptions{}
	if options != nil {
		own = *options
	}
	if own.ContentType == "" {
		own.ContentType = contentType
	}
	if own.JobKey == "" {
		own.JobKey = rand.Text()
	}
	if own.Delay > 0 {
		own.RunAt, own.Delay = time.Now().Add(own.Delay), 0
	}
	stored, err := json.Marshal(own)
	if err != nil {
		return "", "", nil, fmt.Errorf("outbox: options: %w", err)
	}
	return t.spell(insertRow), own.JobKey, []any{own.JobKey, queue, data, stored}, nil
}

// Push writes a job into the outbox, in the caller's transaction, and returns its key: the JobKey of
// the options, or a new one. Payload and options are those of Client.Push; Delay counts from now.
func (t Table) Push(ctx context.Context, tx Execer, queue string, payload any, options *jobline.PushOptions) (string, error) {
	statement, key, args, err := t.Statement(queue, payload, options)
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return key, nil
}
