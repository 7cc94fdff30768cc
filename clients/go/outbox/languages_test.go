package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/outbox"
)

const pythonProgram = `
import sqlite3, sys
from jobline import Client
from jobline.outbox import Outbox, Relay

path, server = sys.argv[1:]
connect = lambda: sqlite3.connect(path, timeout=30)
with Client(server) as client:
    assert Relay(connect, client).run_once().pushed == 1
database = connect()
with database:
    Outbox().push(database, "from-python", {"to": "a@b.c"}, name="n", priority=3)
`

// TestTablesAreThoseOfPython has Python's relay push a row of this package, and the other way round.
func TestTablesAreThoseOfPython(t *testing.T) {
	t.Parallel()
	command, err := testserver.Command()
	if err != nil {
		t.Skip(err)
	}
	server := testserver.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(table("sqlite").Schema()); err != nil {
		t.Fatal(err)
	}
	options := &jobline.PushOptions{Name: "n", Priority: 3, Headers: map[string]string{"h": "1"}}
	if _, err := table("sqlite").Push(t.Context(), db, "from-go", map[string]string{"to": "a@b.c"}, options); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(command), "python"), "-c", pythonProgram, path, server.Address).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	client, err := jobline.New(server.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	relay := &outbox.Relay{Table: table("sqlite"), DB: db, Client: client, Logger: quiet}
	if count, err := relay.Once(t.Context()); count != 1 || err != nil || rowsLeft(t, db, "true") != 0 {
		t.Fatalf("%d rows: %v", count, err)
	}
	worker, err := jobline.NewWorker(server.Address, &jobline.WorkerOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 2)
	for _, queue := range []string{"from-go", "from-python"} {
		jobline.Handle(worker, queue, "n", func(_ context.Context, job *jobline.Job[map[string]string]) (jobline.NoResult, error) {
			seen <- fmt.Sprint(queue, job.Payload["to"], job.Options().GetPriority())
			return jobline.NoResult{}, nil
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	got := map[string]bool{<-seen: true, <-seen: true}
	cancel()
	if err := <-ended; err != nil || !got["from-goa@b.c3"] || !got["from-pythona@b.c3"] {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFullQueueHoldsUpItsOwnRowsAlone(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for _, queue := range []string{"full", "full", "free"} {
				if _, err := table(name).Push(t.Context(), db, queue, 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			far := &server{jobs: map[string]string{}, full: map[string]error{"full": jobline.ErrResourceExhausted}}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, BatchSize: 2, Logger: quiet}
			if count, err := relay.Once(t.Context()); count != 0 || err != nil {
				t.Fatalf("%d rows: %v", count, err)
			}
			if count, err := relay.Once(t.Context()); count != 1 || err != nil || rowsLeft(t, db, "queue = 'full'") != 2 {
				t.Fatalf("%d rows: %v", count, err)
			}
			if _, err := table(name).Push(t.Context(), db, "q", 1, &jobline.PushOptions{JobKey: "k"}); !errors.Is(err, jobline.ErrInvalidArgument) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestJobThatIsRefusedForNowStaysAndHoldsUpItsQueueAlone(t *testing.T) {
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for i, queue := range []string{"full", "full", "full", "free"} {
				if _, err := table(name).Push(t.Context(), db, queue, i, nil); err != nil {
					t.Fatal(err)
				}
			}
			far := &server{jobs: map[string]string{}, alone: map[string]error{
				"full:1": jobline.ErrQueueFull, "full:2": jobline.ErrIdempotencyMismatch,
			}}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
			if _, err := relay.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(far.order, []string{"full:0", "free:3"}) || rowsLeft(t, db, "error IS NULL") != 1 || rowsLeft(t, db, "error IS NOT NULL") != 1 {
				t.Fatalf("%v, and %d rows wait", far.order, rowsLeft(t, db, "error IS NULL"))
			}
			if count, err := relay.Once(t.Context()); count != 0 || err != nil {
				t.Errorf("%d rows of a queue that is passed over, %v", count, err)
			}
			far.alone = nil
			again := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
			if count, err := again.Once(t.Context()); count != 1 || err != nil || rowsLeft(t, db, "error IS NULL") != 0 {
				t.Errorf("%d rows, %v", count, err)
			}
		})
	}
}
