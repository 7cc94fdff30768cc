package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox"
)

// TestRoundReadsNoRowsOfFullQueues, and no refused ones: SQLite and PostgreSQL count what they read.
func TestRoundReadsNoRowsOfFullQueues(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			fill(t, db, "a", "'no'", 3_000)
			fill(t, db, "b", "NULL", 3_000)
			fill(t, db, "c", "NULL", 10)
			if _, err := db.Exec("ANALYZE"); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				outbox.WaitingQueues(table(name)), "SELECT id FROM jobline_outbox WHERE error IS NULL AND queue = 'c' ORDER BY id LIMIT 5",
			} {
				plan := planOf(t, db, name, statement)
				if !strings.Contains(plan, "jobline_outbox_queues") || regexp.MustCompile(`Seq Scan|SCAN jobline_outbox\n|Removed by Filter: \d\d`).MatchString(plan) {
					t.Error(plan)
				}
			}
			far := &server{jobs: map[string]string{}, full: map[string]error{"b": jobline.ErrQueueFull}}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
			for _, want := range []int{0, 10, 0} {
				if count, err := relay.Once(t.Context()); count != want || err != nil {
					t.Errorf("%d rows instead of %d: %v", count, want, err)
				}
			}
		})
	}
}

// fill writes rows without jobs, whose ids begin with the name of the queue.
func fill(t *testing.T, db *sql.DB, queue, refusal string, count int) {
	t.Helper()
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf("('%s-%04d', '%s', '', 0, 0, %s)", queue, i, queue, refusal)
	}
	if _, err := db.Exec("INSERT INTO jobline_outbox VALUES " + strings.Join(rows, ", ")); err != nil {
		t.Fatal(err)
	}
}

// planOf returns how a database runs a query.
func planOf(t *testing.T, db *sql.DB, name, statement string) string {
	t.Helper()
	explain := map[string]string{"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN ANALYZE "}[name]
	found, err := db.Query(explain + statement)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for found.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(string)
		}
		if err := found.Scan(values...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(*values[len(values)-1].(*string) + "\n")
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// TestQueueWithTheOldestRowComesFirst, with its rows up to the end of the batch.
func TestQueueWithTheOldestRowComesFirst(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for i, queue := range []string{"z", "a", "z", "m"} {
				if _, err := table(name).Push(t.Context(), db, queue, i, nil); err != nil {
					t.Fatal(err)
				}
			}
			far := &server{jobs: map[string]string{}}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, BatchSize: 2, Logger: quiet}
			for range 2 {
				if count, err := relay.Once(t.Context()); count != 2 || err != nil {
					t.Errorf("%d rows: %v", count, err)
				}
			}
			if !slices.Equal(far.order, []string{"z:0", "z:2", "a:1", "m:3"}) {
				t.Errorf("pushed %v", far.order)
			}
		})
	}
}

// TestRunGoesOnBehindAFullQueue: the pause would end as the queue is tried again, which would take the round for itself.
func TestRunGoesOnBehindAFullQueue(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for _, queue := range []string{"full", "full", "free"} {
				if _, err := table(name).Push(t.Context(), db, queue, 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			far := &server{jobs: map[string]string{}, full: map[string]error{"full": jobline.ErrQueueFull}}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, BatchSize: 2, Interval: time.Hour, Logger: quiet}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- relay.Run(ctx) }()
			for rowsLeft(t, db, "queue = 'free'") > 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			err := ctx.Err()
			cancel()
			if err := errors.Join(err, <-ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTableOfAnEarlierVersionIsRelayed: it has no index, or another one, until a migration makes that of today.
func TestTableOfAnEarlierVersionIsRelayed(t *testing.T) {
	for _, index := range []string{"SELECT 1", "CREATE INDEX jobline_outbox_waiting ON jobline_outbox (id, queue, size) WHERE error IS NULL"} {
		for name, db := range databases(t) {
			t.Run(name, func(t *testing.T) {
				for _, statement := range []string{"DROP INDEX jobline_outbox_queues", index} {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
				push(t, db, name, "1", true)
				if _, err := table(name).Push(t.Context(), db, "full", 1, nil); err != nil {
					t.Fatal(err)
				}
				far := &server{jobs: map[string]string{}, refuse: "q:1", full: map[string]error{"full": jobline.ErrQueueFull}}
				relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
				if _, err := relay.Once(t.Context()); err != nil || rowsLeft(t, db, "error IS NOT NULL") != 1 {
					t.Fatal(err)
				}
				push(t, db, name, "2", true)
				if count, err := relay.Once(t.Context()); count != 1 || err != nil || rowsLeft(t, db, "queue = 'full'") != 1 {
					t.Errorf("%d rows: %v", count, err)
				}
			})
		}
	}
}

// TestRefusedRowsAreFoundByTheirIndex, with no look at those that wait; a table without it is searched.
func TestRefusedRowsAreFoundByTheirIndex(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			fill(t, db, "a", "NULL", 3_000)
			for _, isIndexed := range []bool{true, false} {
				if !isIndexed {
					if _, err := db.Exec("DROP INDEX jobline_outbox_failed"); err != nil {
						t.Fatal(err)
					}
				}
				queue := fmt.Sprintf("refused-%t", isIndexed)
				fill(t, db, queue, "'no'", 4)
				if _, err := db.Exec("ANALYZE"); err != nil {
					t.Fatal(err)
				}
				plan := planOf(t, db, name, outbox.RetryRows(table(name)))
				if strings.Contains(plan, "jobline_outbox_failed") != isIndexed {
					t.Error(plan)
				}
				if _, err := db.Exec("UPDATE jobline_outbox SET error = 'no' WHERE queue = '" + queue + "'"); err != nil {
					t.Fatal(err) // PostgreSQL has run what it explained
				}
				if count, err := table(name).RetryFailed(t.Context(), db); count != 4 || err != nil {
					t.Errorf("%d rows: %v", count, err)
				}
				if left := rowsLeft(t, db, "error IS NOT NULL"); left != 0 {
					t.Errorf("%d rows are still refused", left)
				}
			}
		})
	}
}

// TestIndexIsInTheSchemaOfItsTable, which the databases spell differently, and has another name, however long.
func TestIndexIsInTheSchemaOfItsTable(t *testing.T) {
	for name, db := range databases(t) {
		schema := map[string]string{"sqlite": "main.", "postgres": "public."}[name]
		for _, given := range []string{schema + "jobs", strings.Repeat("j", 63)} {
			one := outbox.Table{Name: given, Dialect: dialect(name)}
			for _, statement := range []string{one.Schema(), one.IndexSchema(), one.IndexSchema(), one.FailedIndexSchema(), one.FailedIndexSchema()} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			alone := strings.TrimPrefix(given, schema)
			for _, index := range []string{"_queues", "_failed"} {
				if _, err := db.Exec("DROP INDEX " + alone[:min(len(alone), 55)] + index); err != nil {
					t.Error(err)
				}
			}
			if _, err := one.Push(t.Context(), db, "q", 1, &jobline.PushOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}
