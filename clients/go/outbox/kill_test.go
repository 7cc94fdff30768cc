package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/outbox"
	"github.com/jobline/jobline/clients/go/outbox/fence"
)

// Set for this binary when a test starts it again, as a program that is killed: driver and address of its database.
const (
	driverVariable  = "JOBLINE_TEST_DRIVER"
	addressVariable = "JOBLINE_TEST_DATABASE"
	keyVariable     = "JOBLINE_TEST_KEY" // the current one of its codec; "" for no codec
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestMain(m *testing.M) {
	if driver := os.Getenv(driverVariable); driver != "" {
		if err := runProgram(driver, os.Getenv(addressVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if shared.postgres != nil {
		shared.close()
	}
	os.Exit(code)
}

// codecOf returns a codec that seals with one key, and knows all; nil for none.
func codecOf(key string) *jobline.Codec {
	if key == "" {
		return nil
	}
	keys := map[string][]byte{"a": bytes.Repeat([]byte{1}, 32), "b": bytes.Repeat([]byte{2}, 32)}
	codec, err := jobline.NewCodec(jobline.CodecOptions{Keys: jobline.NewKeyMap(keys, func(string) string { return key })})
	if err != nil {
		panic(err)
	}
	return codec
}

func dialectName(driver string) string {
	if driver == "pgx" {
		return "postgres"
	}
	return driver
}

// runProgram writes orders with their jobs, relays them, and works on them, until it is killed.
func runProgram(driver, address string) error {
	db, err := sql.Open(driver, address)
	if err != nil {
		return err
	}
	name := dialectName(driver)
	codec := codecOf(os.Getenv(keyVariable))
	client, err := jobline.New("", &jobline.ClientOptions{Logger: quiet, Codec: codec})
	if err != nil {
		return err
	}
	worker, err := jobline.NewWorker("", &jobline.WorkerOptions{Concurrency: 4, Logger: quiet, Codec: codec})
	if err != nil {
		return err
	}
	jobline.Handle(worker, name, "", func(ctx context.Context, job *jobline.Job[string]) (jobline.NoResult, error) {
		defer time.Sleep(3 * time.Millisecond) // so that some kills come between commit and ack
		return jobline.NoResult{}, effect(ctx, db, name, job)
	})
	ended := make(chan error, 3)
	relay := &outbox.Relay{Table: table(name), DB: db, Client: client, Interval: time.Millisecond, BatchSize: 5, Logger: quiet}
	go func() { ended <- relay.Run(context.Background()) }()
	go func() { ended <- worker.Run(context.Background()) }()
	go func() {
		for err == nil {
			err = order(context.Background(), db, name)
			time.Sleep(4 * time.Millisecond) // slower than the worker
		}
		ended <- err
	}()
	return <-ended
}

// order commits an order together with its job.
func order(ctx context.Context, db *sql.DB, name string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	number := strconv.FormatUint(rand.Uint64(), 36)
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES ('"+number+"')"); err != nil {
		return err
	}
	options := &jobline.PushOptions{Lease: time.Second, MaxStalls: 1_000, MaxAttempts: 1_000, Backoff: &jobline.Backoff{Base: 10 * time.Millisecond}}
	if rand.IntN(2) == 0 {
		options.UniqueKey, options.UniqueMode = number, jobline.UniqueReject
	}
	if _, err := table(name).Push(ctx, tx, name, number, options); err != nil {
		return err
	}
	return tx.Commit()
}

// effect commits the effect of a job, unless an earlier delivery did.
func effect(ctx context.Context, db *sql.DB, name string, job *jobline.Job[string]) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := fences(name).Pass(ctx, tx, job.LeasedJob); err != nil {
		if errors.Is(err, fence.ErrDone) {
			err = tx.Rollback()
			_, failed := db.ExecContext(ctx, "INSERT INTO repeats (number) VALUES ('"+job.Payload+"')")
			return errors.Join(err, failed)
		}
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (number) VALUES ('"+job.Payload+"')"); err != nil {
		return err
	}
	return tx.Commit()
}

// TestKilledProgramsHaveEachEffectOnce kills a program that writes, relays and works, at random moments: every order
// has one invoice. Sealed: each start has another key of the codec, so that a row whose deletion was lost is sealed
// anew. JOBLINE_KILLS=50 does it 50 times instead of 3.
func TestKilledProgramsHaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	rounds := 3
	if given, err := strconv.Atoi(os.Getenv("JOBLINE_KILLS")); err == nil {
		rounds = given
	}
	postgres := startPostgres(t)
	for _, isSealed := range []bool{false, true} {
		addresses := map[string]string{"sqlite": filepath.Join(t.TempDir(), "a.db") + "?_pragma=busy_timeout(10000)&_txlock=immediate&_pragma=journal_mode(wal)"}
		if postgres != "" && !isSealed { // its tables are made once
			addresses["pgx"] = postgres
		}
		for driver, address := range addresses {
			t.Run(fmt.Sprintf("%s sealed=%v", driver, isSealed), func(t *testing.T) {
				t.Parallel()
				killPrograms(t, testserver.New(t).Address, driver, address, isSealed, rounds)
			})
		}
	}
}

func killPrograms(t *testing.T, server, driver, address string, isSealed bool, rounds int) {
	name := dialectName(driver)
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, schema := range []string{
		table(name).Schema(), fences(name).Schema(), "CREATE TABLE orders (number TEXT)", "CREATE TABLE invoices (number TEXT)",
		"CREATE TABLE repeats (number TEXT)",
	} {
		if _, err := db.Exec(schema); err != nil {
			t.Fatal(err)
		}
	}
	count := func(query string) (count int) {
		if err := db.QueryRow("SELECT count(*) FROM " + query).Scan(&count); err != nil {
			t.Error(err)
		}
		return count
	}
	key := func(round int) string {
		if !isSealed {
			return ""
		}
		return string("ab"[round%2])
	}
	start := func(round int) *exec.Cmd {
		program := exec.Command(os.Args[0])
		program.Stderr = os.Stderr
		program.Env = append(os.Environ(), driverVariable+"="+driver, addressVariable+"="+address, "JOBLINE_SERVER="+server, keyVariable+"="+key(round))
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		return program
	}
	for round := range rounds {
		program, before := start(round), count("invoices")
		for end := time.Now().Add(time.Minute); count("invoices") < before+3 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	finish(t, db, name, server, codecOf(key(rounds)))
	orders, invoices, billed := count("orders"), count("invoices"), count("(SELECT DISTINCT number FROM invoices) AS billed")
	t.Logf("%d kills: %d orders, %d invoices, %d deliveries refused by the fence", rounds, orders, invoices, count("repeats"))
	if orders == 0 || invoices != orders || billed != orders || rowsLeft(t, db, "true") != 0 {
		t.Errorf("%d orders have %d invoices, of %d", orders, invoices, billed)
	}
}

// finish relays and works off what the killed programs have left.
func finish(t *testing.T, db *sql.DB, name, server string, codec *jobline.Codec) {
	t.Helper()
	client, err := jobline.New(server, &jobline.ClientOptions{Logger: quiet, Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	relay := &outbox.Relay{Table: table(name), DB: db, Client: client, Logger: quiet}
	for rowsLeft(t, db, "error IS NULL") > 0 {
		if _, err := relay.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	worker, err := jobline.NewWorker(server, &jobline.WorkerOptions{Concurrency: 1, ExitWhenIdle: 2 * time.Second, Logger: quiet, Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	jobline.Handle(worker, name, "", func(ctx context.Context, job *jobline.Job[string]) (jobline.NoResult, error) {
		return jobline.NoResult{}, effect(ctx, db, name, job)
	})
	if err := worker.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
