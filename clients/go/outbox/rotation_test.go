package outbox_test

import (
	"bytes"
	"context"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox"
)

// losing is a client whose answers are lost until it is told otherwise.
type losing struct {
	*jobline.Client
	passes bool
}

func (l *losing) PushMessages(ctx context.Context, queue string, jobs []*joblinev1.NewJob) ([]jobline.Pushed, error) {
	pushed, err := l.Client.PushMessages(ctx, queue, jobs)
	if err == nil && !l.passes {
		return nil, jobline.ErrUnavailable
	}
	return pushed, err
}

// TestRowThatWasStoredUnderAnEarlierKeyIsDone: it is sealed anew at each try, so the server sees the key of the job with
// another payload once the key of the codec has changed.
func TestRowThatWasStoredUnderAnEarlierKeyIsDone(t *testing.T) {
	server, current := testserver.New(t), "a"
	codec, err := jobline.NewCodec(jobline.CodecOptions{Keys: jobline.NewKeyMap(
		map[string][]byte{"a": bytes.Repeat([]byte{1}, 32), "b": bytes.Repeat([]byte{2}, 32)},
		func(string) string { return current },
	)})
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range databases(t) {
		t.Run(name, func(t *testing.T) {
			client, err := jobline.New(server.Address, &jobline.ClientOptions{Logger: quiet, Codec: codec})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			// The second one holds a unique key, too, so that what it is refused for is not plain.
			for _, options := range []*jobline.PushOptions{nil, {UniqueKey: "u", UniqueMode: jobline.UniqueReject}} {
				if _, err := table(name).Push(t.Context(), db, name, 1, options); err != nil {
					t.Fatal(err)
				}
			}
			far := &losing{Client: client}
			relay := &outbox.Relay{Table: table(name), DB: db, Client: far, Logger: quiet}
			if _, err := relay.Once(t.Context()); err == nil {
				t.Fatal("an answer that is lost is no answer")
			}
			current, far.passes = "b", true
			if count, err := relay.Once(t.Context()); count != 2 || err != nil || rowsLeft(t, db, "true") != 0 {
				t.Errorf("%d rows: %v; %d are left", count, err, rowsLeft(t, db, "true"))
			}
			current = "a"
			other := &jobline.PushOptions{UniqueKey: "u", UniqueMode: jobline.UniqueReject}
			if _, err := table(name).Push(t.Context(), db, name, 2, other); err != nil {
				t.Fatal(err)
			}
			if _, err := relay.Once(t.Context()); err != nil || rowsLeft(t, db, "error LIKE '%unique%'") != 1 {
				t.Errorf("a key that another job holds: %v, %d rows, %d refused", err, rowsLeft(t, db, "true"), rowsLeft(t, db, "error IS NOT NULL"))
			}
		})
	}
}
