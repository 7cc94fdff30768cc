package outbox_test

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/outbox"
	"github.com/jobline/jobline/clients/go/outbox/fence"
	"github.com/jobline/jobline/clients/go/outbox/pgxoutbox"
)

func TestWhatIsNilIsRefusedByName(t *testing.T) {
	ctx, job := t.Context(), &jobline.LeasedJob{ID: 1}
	var noTx *sql.Tx
	for _, tx := range []outbox.Execer{nil, noTx} {
		_, err := table("sqlite").Push(ctx, tx, "q", 1, nil)
		wantField(t, err, "tx")
		_, err = table("sqlite").RetryFailed(ctx, tx)
		wantField(t, err, "tx")
	}
	for _, tx := range []pgxoutbox.Execer{nil, (*pgx.Conn)(nil), (*pgxpool.Pool)(nil)} {
		_, err := pgxoutbox.Push(ctx, tx, table("postgres"), "q", 1, nil)
		wantField(t, err, "tx")
	}
	wantField(t, fences("sqlite").Pass(ctx, nil, job), "tx")
	wantField(t, pgxoutbox.Pass(ctx, nil, fences("postgres"), job), "tx")
	_, err := fences("sqlite").Clean(ctx, nil, time.Hour)
	wantField(t, err, "tx")
	never := func(string, ...any) (int64, error) { panic("no statement is made") }
	wantField(t, fence.Table{}.PassBy(nil, "effect", never), "job")
	wantField(t, fence.Table{}.PassBy(job, strings.Repeat("a", 201), never), "step")
}

func TestARelayWithoutItsPartsEndsAtOnce(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var noClient *jobline.Client
	for field, relay := range map[string]*outbox.Relay{
		"DB": {Client: &server{}}, "Client": {DB: db}, "Client ": {DB: db, Client: noClient},
	} {
		_, err := relay.Once(t.Context())
		wantField(t, err, strings.TrimSpace(field))
		var logged strings.Builder
		relay.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		wantField(t, relay.Run(t.Context()), strings.TrimSpace(field))
		if !strings.Contains(logged.String(), "level=ERROR") {
			t.Errorf("it says nothing to who does not look at its error: %q", logged.String())
		}
	}
}
