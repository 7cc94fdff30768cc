package outbox_test

import (
	"fmt"
	"strings"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox"
)

// TestRoundReadsNoRefusedRows asks the databases by what they find the rows that wait.
func TestRoundReadsNoRefusedRows(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			row := func(i int) string { return fmt.Sprintf("('%04d', 'q', '', 0, 0, 'no')", i) }
			insert := "INSERT INTO jobline_outbox VALUES " + row(0)
			for i := range 3_000 {
				insert += ", " + row(1+i)
			}
			if _, err := db.Exec(insert); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("ANALYZE"); err != nil {
				t.Fatal(err)
			}
			explain := map[string]string{"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN "}[name]
			found, err := db.Query(explain + "SELECT id, queue, size FROM jobline_outbox WHERE error IS NULL ORDER BY id LIMIT 500")
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
			if err := found.Err(); err != nil || !strings.Contains(plan.String(), "jobline_outbox_waiting") {
				t.Errorf("%v: %s", err, plan.String())
			}
		})
	}
}

// TestTableWithoutTheIndexIsRelayed: those of earlier versions have none until a migration makes it.
func TestTableWithoutTheIndexIsRelayed(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			if _, err := db.Exec("DROP INDEX jobline_outbox_waiting"); err != nil {
				t.Fatal(err)
			}
			push(t, db, name, "1", true)
			far := &server{jobs: map[string]string{}, refuse: "q:1"}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
			if _, err := relay.Once(t.Context()); err != nil || rowsLeft(t, db, "error IS NOT NULL") != 1 {
				t.Fatal(err)
			}
			push(t, db, name, "2", true)
			if count, err := relay.Once(t.Context()); count != 1 || err != nil {
				t.Errorf("%d rows: %v", count, err)
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
			for _, statement := range []string{one.Schema(), one.IndexSchema(), one.IndexSchema()} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			alone := strings.TrimPrefix(given, schema)
			if _, err := db.Exec("DROP INDEX " + alone[:min(len(alone), 55)] + "_waiting"); err != nil {
				t.Error(err)
			}
			if _, err := one.Push(t.Context(), db, "q", 1, &jobline.PushOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}
