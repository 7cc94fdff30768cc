package outbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
	"github.com/jobline/jobline/clients/go/outbox"
)

const day = 24 * time.Hour

// tooMany are texts that differ.
func tooMany(count int) []string {
	texts := make([]string, count)
	for i := range texts {
		texts[i] = fmt.Sprint("a", i)
	}
	return texts
}

func headers(count int) map[string]string {
	made := map[string]string{}
	for _, key := range tooMany(count) {
		made[key] = "1"
	}
	return made
}

// refused are jobs that a server refuses whatever it holds, with the field at fault.
var refused = []struct {
	field   string
	options jobline.PushOptions
}{
	{"options.name", jobline.PushOptions{Name: strings.Repeat("ä", 257)}},
	{"options.name", jobline.PushOptions{Name: "a\nb"}},
	{"options.content_type", jobline.PushOptions{ContentType: strings.Repeat("a", 257)}},
	{"options.headers", jobline.PushOptions{Headers: map[string]string{"": "1"}}},
	{"options.headers", jobline.PushOptions{Headers: map[string]string{"a": "b\r\nc"}}},
	{"options.headers", jobline.PushOptions{Headers: map[string]string{"a": strings.Repeat("b", 8<<10)}}},
	{"options.headers", jobline.PushOptions{Headers: headers(65)}},
	{"options.lease", jobline.PushOptions{Lease: 999 * time.Millisecond}},
	{"options.lease", jobline.PushOptions{Lease: 12*time.Hour + time.Nanosecond}},
	{"options.ttl", jobline.PushOptions{TTL: 401 * day}},
	{"options.timeout", jobline.PushOptions{Timeout: time.Millisecond}},
	{"options.timeout", jobline.PushOptions{Timeout: 401 * day}},
	{"options.max_attempts", jobline.PushOptions{MaxAttempts: 1_001}},
	{"options.max_attempts", jobline.PushOptions{MaxAttempts: -2}},
	{"options.max_stalls", jobline.PushOptions{MaxStalls: 1_001}},
	{"options.backoff.base", jobline.PushOptions{Backoff: &jobline.Backoff{Base: 25 * time.Hour}}},
	{"options.backoff.base", jobline.PushOptions{Backoff: &jobline.Backoff{Base: -time.Second}}},
	{"options.backoff.max_delay", jobline.PushOptions{Backoff: &jobline.Backoff{Max: 25 * time.Hour}}},
	{"options.backoff.jitter", jobline.PushOptions{Backoff: &jobline.Backoff{Jitter: 1.1}}},
	{"options.backoff.delays[1]", jobline.PushOptions{Backoff: &jobline.Backoff{Delays: []time.Duration{0, -1}}}},
	{"options.backoff.delays", jobline.PushOptions{Backoff: &jobline.Backoff{Delays: make([]time.Duration, 101)}}},
	{"options.backoff.delays", jobline.PushOptions{Backoff: &jobline.Backoff{Fixed: true, Delays: []time.Duration{1}}}},
	{"options.retention.age", jobline.PushOptions{Retention: &jobline.Retention{Age: 401 * day}}},
	{"options.retention.delete_after", jobline.PushOptions{Retention: &jobline.Retention{DeleteAfter: -1}}},
	{"options.retention.count", jobline.PushOptions{Retention: &jobline.Retention{Count: -1}}},
	{"options.retry_until", jobline.PushOptions{RetryUntil: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	{"options.delivery", jobline.PushOptions{Delivery: 9}},
	{"options.unique_key", jobline.PushOptions{UniqueKey: strings.Repeat("ä", 129)}},
	{"options.unique_key", jobline.PushOptions{UniqueKey: "a\x00"}},
	{"options.unique_mode", jobline.PushOptions{UniqueMode: jobline.UniqueKeep}},
	{"options.unique_mode", jobline.PushOptions{UniqueKey: "k", UniqueMode: 99}},
	{"options.unique_mode", jobline.PushOptions{UniqueKey: "k", UniqueMode: jobline.UniqueDebounce}},
	{"options.unique_ttl", jobline.PushOptions{UniqueKey: "k", UniqueTTL: 401 * day}},
	{"options.unique_max_wait", jobline.PushOptions{UniqueKey: "k", UniqueMaxWait: 401 * day}},
	{"options.unique_max_wait", jobline.PushOptions{UniqueKey: "k", UniqueMode: jobline.UniqueKeep, UniqueMaxWait: 1}},
	{"options.group", jobline.PushOptions{Group: strings.Repeat("a", 257)}},
	{"options.sticky", jobline.PushOptions{Sticky: true}},
	{"options.depends_on", jobline.PushOptions{DependsOn: make([]uint64, 1_001)}},
	{"options.on_dependency_failure", jobline.PushOptions{OnDependencyFailure: 99}},
	{"options.block_timeout", jobline.PushOptions{BlockTimeout: 401 * day}},
	{"options.limiters", jobline.PushOptions{Limiters: tooMany(5)}},
	{"options.limiters[1]", jobline.PushOptions{Limiters: []string{"a", "b c"}}},
	{"options.cost", jobline.PushOptions{Cost: -1}},
	{"options.cost", jobline.PushOptions{Cost: 1_000_001}},
	{"options.slots", jobline.PushOptions{Slots: 1_001}},
	{"options.phases", jobline.PushOptions{Phases: []string{"a", "a"}}},
	{"options.phases", jobline.PushOptions{Phases: []string{""}}},
	{"options.phases", jobline.PushOptions{Phases: tooMany(101)}},
	{"options.phases[0]", jobline.PushOptions{Phases: []string{strings.Repeat("a", 129)}}},
	{"options.tags", jobline.PushOptions{Tags: []string{""}}},
	{"options.tags", jobline.PushOptions{Tags: tooMany(17)}},
	{"options.tags[1]", jobline.PushOptions{Tags: []string{"a", strings.Repeat("a", 129)}}},
	{"options", jobline.PushOptions{Tags: []string{"a:\xff"}}},
	{"options.webhook", jobline.PushOptions{Webhook: "ftp://a.example"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://:80/a"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://me:word@a.example"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://a.example:0"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://a.example:1:2"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://[::1"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://a.example:70000"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://a.example/a b"}},
	{"options.webhook", jobline.PushOptions{Webhook: "https://a.example/" + strings.Repeat("a", 2_048)}},
	{"options.min_worker_version", jobline.PushOptions{MinWorkerVersion: "?"}},
	{"delay", jobline.PushOptions{Delay: 401 * day}},
	{"delay", jobline.PushOptions{Delay: -1}},
	{"delay", jobline.PushOptions{Delay: 1, RunAt: time.Unix(1, 0)}},
	{"run_at", jobline.PushOptions{RunAt: time.Now().Add(401 * day)}},
	{"run_at", jobline.PushOptions{RunAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	{"depends_on_indexes", jobline.PushOptions{DependsOnIndexes: []uint32{1}}},
}

// taken are jobs at the edges of what a server takes.
var taken = []jobline.PushOptions{
	{Name: strings.Repeat("ä", 256), ContentType: strings.Repeat("a", 256), Headers: headers(64)},
	{Headers: map[string]string{"a": strings.Repeat("b", 8<<10-1)}},
	{Priority: -1 << 31, LIFO: true, Lease: time.Second, TTL: jobline.None, Timeout: jobline.None},
	{Priority: 1<<31 - 1, Lease: 12 * time.Hour, TTL: 400 * day, Timeout: 400 * day, RetryUntil: time.Unix(1, 0)},
	{Lease: 999*time.Millisecond + 1, Timeout: time.Second}, // milliseconds are rounded up
	{MaxAttempts: 1_000, MaxStalls: 1_000, Backoff: &jobline.Backoff{Fixed: true, Base: day, Max: day, Jitter: 1}},
	{MaxAttempts: jobline.None, MaxStalls: jobline.None, Backoff: &jobline.Backoff{Delays: make([]time.Duration, 100)}},
	{Retention: &jobline.Retention{Age: 400 * day, DeleteAfter: 400 * day, Count: 10_000_000}},
	{UniqueKey: strings.Repeat("ä", 128), UniqueMode: jobline.UniqueKeep, UniqueTTL: 400 * day},
	{UniqueKey: "d", UniqueMode: jobline.UniqueDebounce, Delay: time.Second, UniqueMaxWait: 400 * day},
	{UniqueKey: "w", UniqueMaxWait: 1, UniqueTTL: 1},
	{Group: strings.Repeat("ä", 256), Sticky: true, HoldOnDead: true},
	{OnDependencyFailure: 5, BlockTimeout: 400 * day, Cost: 1_000_000, Slots: 1_000, Delivery: jobline.DeliverOnce},
	{Phases: tooMany(100), Tags: tooMany(16), MinWorkerVersion: "1.2-a+b_c"},
	{Phases: []string{strings.Repeat("ä", 128)}, Tags: []string{strings.Repeat("ä", 128)}},
	{Webhook: "HTTPS://[::1]:65535/%zz?a#b"},
	{Webhook: "http://a.example:"},
	{RunAt: time.Unix(1, 0)},
	{RunAt: time.Now().Add(399 * day)},
	{Delay: 400 * day},
}

var badQueues = []string{"", "_mine", "a b", "ä", "-a", "a\n", "a\xff", strings.Repeat("a", 257)}
var goodQueues = []string{"A.b_c:d-e", "0", strings.Repeat("a", 256)}

// pushing is an outbox in SQLite, and a client of a real server.
type pushing struct {
	db     *sql.DB
	client *jobline.Client
}

func newPushing(t *testing.T) *pushing {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(table("sqlite").Schema()); err != nil {
		t.Fatal(err)
	}
	client, err := jobline.New(testserver.New(t).Address, &jobline.ClientOptions{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &pushing{db, client}
}

// bothRefuse checks that a row and a push are refused with the same class and field, and that no row is written.
func (p *pushing) bothRefuse(t *testing.T, field, queue string, options *jobline.PushOptions) {
	t.Helper()
	_, ofRow := table("sqlite").Push(t.Context(), p.db, queue, 1, options)
	_, ofPush := p.client.Push(t.Context(), queue, 1, options)
	isTooLarge := errors.Is(ofPush, jobline.ErrTooLarge)
	for _, err := range []error{ofRow, ofPush} {
		var one *jobline.Error
		if !errors.As(err, &one) || !one.Definite() || one.Retryable() || strings.TrimPrefix(one.Field, "jobs[0].") != field {
			t.Errorf("%s of %q: got %#v: %v", field, queue, one, err)
		}
		if errors.Is(err, jobline.ErrTooLarge) != isTooLarge || errors.Is(err, jobline.ErrInvalidArgument) == isTooLarge {
			t.Errorf("%s of %q: the row says %v, and the push %v", field, queue, ofRow, ofPush)
		}
	}
	if rowsLeft(t, p.db, "true") != 0 {
		t.Errorf("%s of %q: a row was written", field, queue)
	}
}

func TestWhatAServerRefusesIsRefusedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	p := newPushing(t)
	for _, one := range refused {
		p.bothRefuse(t, one.field, "q", &one.options)
	}
	for _, queue := range badQueues {
		p.bothRefuse(t, "queue", queue, nil)
	}
}

func TestWhatAServerTakesIsWritten(t *testing.T) {
	t.Parallel()
	p := newPushing(t)
	for i, options := range taken {
		p.bothTake(t, fmt.Sprint("q", i), &options)
	}
	for _, queue := range goodQueues {
		p.bothTake(t, queue, nil)
	}
	relay := &outbox.Relay{Table: table("sqlite"), DB: p.db, Client: p.client, Logger: quiet}
	if _, err := relay.Once(t.Context()); err != nil || rowsLeft(t, p.db, "error IS NOT NULL") != 0 {
		t.Errorf("%d rows were refused: %v", rowsLeft(t, p.db, "true"), err)
	}
}

func (p *pushing) bothTake(t *testing.T, queue string, options *jobline.PushOptions) {
	t.Helper()
	if _, err := table("sqlite").Push(t.Context(), p.db, queue, 1, options); err != nil {
		t.Errorf("the row of %+v: %v", options, err)
	}
	if _, err := p.client.Push(t.Context(), queue, 1, options); err != nil {
		t.Errorf("the push of %+v: %v", options, err)
	}
}

// A codec of the relay may hash them, so that they are shorter there.
func TestLongPairsAreTagsOfAnOutbox(t *testing.T) {
	options := &jobline.PushOptions{Tags: []string{"email:" + strings.Repeat("a", 200)}}
	if _, _, _, err := table("sqlite").Statement("q", 1, options); err != nil {
		t.Error(err)
	}
}

func TestOptionsOfACallAreNoneOfARow(t *testing.T) {
	for field, options := range map[string]jobline.PushOptions{
		"job_key": {JobKey: "k"}, "ack_level": {AckLevel: jobline.AckMemory},
	} {
		_, _, _, err := table("sqlite").Statement("q", 1, &options)
		wantField(t, err, field)
	}
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var one *jobline.Error
	if !errors.As(err, &one) || !errors.Is(err, jobline.ErrInvalidArgument) || one.Field != field {
		t.Errorf("%s: got %v", field, err)
	}
}

func TestTheDelayOfARowCountsFromItsWriting(t *testing.T) {
	before := time.Now()
	_, _, args, err := table("sqlite").Statement("q", 1, &jobline.PushOptions{Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(args, func(one any) bool { _, isJob := one.([]byte); return isJob })
	if job := messageOf(t, args[at].([]byte)); job.GetDelay() != nil || job.GetRunAt().AsTime().Before(before.Add(time.Hour)) {
		t.Errorf("got %v", job)
	}
}

func messageOf(t *testing.T, data []byte) *joblinev1.NewJob {
	t.Helper()
	job := &joblinev1.NewJob{}
	if err := proto.Unmarshal(data, job); err != nil {
		t.Fatal(err)
	}
	return job
}
