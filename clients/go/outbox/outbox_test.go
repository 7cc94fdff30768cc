package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox"
	"github.com/jobline/jobline/clients/go/outbox/fence"
	"github.com/jobline/jobline/clients/go/outbox/pgxoutbox"
)

// server is a Jobline that stores jobs by key, and fails as it is told to.
type server struct {
	jobs   map[string]string // key → queue and payload
	order  []string
	fails  error
	loses  bool // it stores what is pushed, and its answer is lost
	refuse string
	full   map[string]error // by queue
	alone  map[string]error // by queue and payload
}

func (s *server) PushMessages(_ context.Context, queue string, jobs []*joblinev1.NewJob) ([]jobline.Pushed, error) {
	if err := s.full[queue]; err != nil {
		return nil, err
	}
	if s.fails != nil {
		return nil, s.fails
	}
	pushed := make([]jobline.Pushed, len(jobs))
	for i, job := range jobs {
		payload := fmt.Sprintf("%s:%s", queue, job.GetData())
		if s.refuse != "" && payload == s.refuse {
			pushed[i].Err = jobline.ErrIdempotencyMismatch
			continue
		}
		if err := s.alone[payload]; err != nil {
			pushed[i].Err = err
			continue
		}
		if _, isThere := s.jobs[job.GetJobKey()]; !isThere {
			s.jobs[job.GetJobKey()] = payload
			s.order = append(s.order, payload)
		}
	}
	if s.loses {
		return nil, jobline.ErrUnavailable
	}
	return pushed, nil
}

// databases are those that this machine has, each with an outbox and fences.
func databases(t *testing.T) map[string]*sql.DB {
	t.Helper()
	lite, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*sql.DB{"sqlite": lite}
	if address := startPostgres(t); address != "" {
		found["postgres"] = openPostgres(t, address)
	}
	for name, db := range found {
		t.Cleanup(func() { _ = db.Close() })
		for _, schema := range []string{table(name).Schema(), table(name).IndexSchema(), table(name).FailedIndexSchema(), fences(name).Schema(), `CREATE TABLE effects (id BIGINT)`} {
			if _, err := db.Exec(schema); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return found
}

func dialect(name string) outbox.Dialect {
	return map[string]outbox.Dialect{"sqlite": outbox.SQLite, "postgres": outbox.Postgres}[name]
}

func table(name string) outbox.Table { return outbox.Table{Dialect: dialect(name)} }
func fences(name string) fence.Table { return fence.Table{Dialect: dialect(name)} }

func push(t *testing.T, db *sql.DB, name, payload string, commit bool) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	options := &jobline.PushOptions{Name: "n", Delay: time.Hour}
	if _, err := table(name).Push(t.Context(), tx, "q", []byte(payload), options); err != nil {
		t.Fatal(err)
	}
	if commit {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func rowsLeft(t *testing.T, db *sql.DB, where string) (count int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM jobline_outbox WHERE " + where).Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestRowsOfCommittedTransactionsArePushedOnce(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for i := range 5 {
				push(t, db, name, fmt.Sprint(i), true)
				push(t, db, name, "rolled back", false)
			}
			far := &server{jobs: map[string]string{}, fails: jobline.ErrUnavailable}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far}
			if _, err := relay.Once(t.Context()); !errors.Is(err, jobline.ErrUnavailable) {
				t.Fatalf("got %v", err)
			}
			far.fails, far.loses = nil, true
			if _, err := relay.Once(t.Context()); err == nil {
				t.Fatal("an answer that is lost is no answer")
			}
			far.loses = false
			if count, err := relay.Once(t.Context()); count != 5 || err != nil {
				t.Fatalf("%d rows: %v", count, err)
			}
			if !slices.Equal(far.order, []string{"q:0", "q:1", "q:2", "q:3", "q:4"}) || rowsLeft(t, db, "true") != 0 {
				t.Fatalf("pushed %v", far.order)
			}
		})
	}
}

func TestRefusedRowDoesNotHoldUpTheOthers(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for _, payload := range []string{"a", "b", "c"} {
				push(t, db, name, payload, true)
			}
			far := &server{jobs: map[string]string{}, refuse: "q:b"}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Interval: time.Millisecond, Logger: quiet}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- relay.Run(ctx) }()
			for rowsLeft(t, db, "error IS NULL") > 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-done; err != nil || rowsLeft(t, db, "error IS NOT NULL") != 1 || len(far.jobs) != 2 {
				t.Fatalf("%v, %v", err, far.jobs)
			}
		})
	}
}

func TestOneDeliveryPassesTheFence(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			work := func(delivery uint64, commit bool) error {
				tx, err := db.Begin()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				if err := fences(name).Pass(t.Context(), tx, &jobline.LeasedJob{ID: 7, Delivery: delivery}); err != nil {
					return err
				}
				if _, err := tx.Exec("INSERT INTO effects (id) VALUES (7)"); err != nil || !commit {
					return err
				}
				return tx.Commit()
			}
			for i, step := range []struct {
				delivery uint64
				commit   bool
				want     error
			}{{1, false, nil}, {2, true, nil}, {2, true, fence.ErrDone}, {1, true, fence.ErrOvertaken}, {3, true, fence.ErrDone}} {
				if err := work(step.delivery, step.commit); !errors.Is(err, step.want) {
					t.Errorf("step %d: %v", i, err)
				}
			}
			var effects int
			if err := db.QueryRow("SELECT count(*) FROM effects").Scan(&effects); err != nil || effects != 1 {
				t.Errorf("%d effects: %v", effects, err)
			}
		})
	}
}

func TestPgxTransactions(t *testing.T) {
	address := startPostgres(t)
	if address == "" {
		t.Skip("no PostgreSQL on this machine")
	}
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, schema := range []string{table("postgres").Schema(), fences("postgres").Schema()} {
		if _, err := pool.Exec(ctx, schema); err != nil {
			t.Fatal(err)
		}
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := pgxoutbox.Push(ctx, tx, table("postgres"), "q", []byte("x"), nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(delivery uint64) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return pgxoutbox.Pass(ctx, tx, fences("postgres"), &jobline.LeasedJob{ID: 1, Delivery: delivery})
		})
	}
	if err := errors.Join(pass(2)); err != nil {
		t.Error(err)
	}
	if err := pass(1); !errors.Is(err, fence.ErrOvertaken) {
		t.Error(err)
	}
	far := &server{jobs: map[string]string{}}
	relay := &outbox.Relay{DB: openPostgres(t, address), Client: far}
	if count, err := relay.Once(ctx); count != 1 || err != nil || len(far.jobs) != 1 {
		t.Errorf("%d rows: %v", count, err)
	}
}
