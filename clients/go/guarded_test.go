package jobline_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// guarded is a server that asks for the keys of these lines, and the file that has them.
func guarded(t *testing.T, lines string, arguments ...string) (*testserver.Server, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "auth.toml")
	rewrite(t, file, lines)
	return testserver.New(t, append(arguments, "--auth", file)...), file
}

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTokenByTLS: all by options, and all by the environment; a worker pushes children with its own token.
func TestTokenByTLS(t *testing.T) {
	bare(t)
	authority := testserver.NewAuthority(t)
	certificate, key := authority.Issue(t, t.TempDir(), "server", time.Now().Add(time.Hour))
	server, _ := guarded(t, testserver.KeyLines("mail", time.Time{}), "--tls-certificate", certificate, "--tls-key", key)
	ctx, token, tls := newContext(t), jobline.Token(testserver.Key("mail")), &jobline.TLS{CA: authority.File}
	client := clientOf(t, server.Address, &jobline.ClientOptions{Connection: jobline.Connection{Token: token, TLS: tls}})
	must[jobline.Pushed](t)(client.Push(ctx, "mail", "first", nil))
	stranger := clientOf(t, server.Address, &jobline.ClientOptions{Connection: jobline.Connection{TLS: tls}})
	_, err := stranger.Push(ctx, "mail", 1, nil)
	var refused *jobline.Error
	if !errors.As(err, &refused) || !errors.Is(err, jobline.ErrUnauthenticated) || refused.Reason != "AUTH_REQUIRED" || refused.Retryable() {
		t.Fatalf("without a token: %v", err)
	}
	t.Setenv("JOBLINE_TOKEN", string(token))
	t.Setenv("JOBLINE_TLS_CA", authority.File)
	worker := workerOf(t, server.Address, jobline.WorkerOptions{})
	seen := make(chan string, 2)
	jobline.Handle(worker, "mail", "", func(ctx context.Context, job *jobline.Job[string]) (any, error) {
		seen <- job.Payload
		if job.Payload == "first" {
			return nil, jobline.WaitFor(jobline.FlowJob{Queue: "mail-children", Payload: 1})
		}
		return nil, nil
	})
	children := make(chan struct{})
	jobline.Handle(worker, "mail-children", "", func(context.Context, *jobline.Job[int]) (int, error) {
		close(children)
		return 1, nil
	})
	start(t, worker)
	if first := <-seen; first != "first" {
		t.Fatal(first)
	}
	<-children
	of := clientOf(t, server.Address, nil)
	_, err = of.Push(ctx, "other", 1, nil)
	if !errors.Is(err, jobline.ErrPermissionDenied) || !strings.Contains(err.Error(), "no role with the verb push for queue other") {
		t.Fatalf("a queue that is not allowed: %v", err)
	}
}

// TestWorkerRenewsItsToken: its stream, and the waits of a client, end with the first one, and go on with the next.
func TestWorkerRenewsItsToken(t *testing.T) {
	t.Parallel()
	end := time.Now().Add(3 * time.Second)
	server, file := guarded(t, testserver.KeyLines("mail", time.Time{}))
	first := strings.Replace(testserver.KeyLines("early", end), `roles = ["early"]`, `roles = ["mail"]`, 1)
	rewrite(t, file, testserver.KeyLines("mail", time.Time{})+first)
	var asked atomic.Int64
	token := func(context.Context) (string, error) {
		asked.Add(1)
		if time.Now().Before(end) {
			return testserver.Key("early"), nil
		}
		return testserver.Key("mail"), nil
	}
	ctx, connection := newContext(t), jobline.Connection{TokenFunc: token}
	client := clientOf(t, server.Address, &jobline.ClientOptions{Connection: connection})
	eventually(t, "the server has read the new file", func() bool {
		_, err := client.Push(ctx, "mail", 1, nil)
		return err == nil
	})
	later := must[jobline.Pushed](t)(client.Push(ctx, "mail", 2, &jobline.PushOptions{Delay: 5 * time.Second}))
	worker := workerOf(t, server.Address, jobline.WorkerOptions{Connection: connection})
	jobline.Handle(worker, "mail", "", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload, nil })
	start(t, worker)
	if done := must[jobline.JobEnd](t)(client.WaitOne(ctx, later.ID)); done.Err() != nil || string(done.Result) != "2" {
		t.Fatal(done)
	}
	if asked.Load() < 4 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestWorkerWhoseTokenIsRefusedForGoodSaysSo: one that has ended, one that is revoked under an open stream, one
// without the right, and a function that returns none but ended ones.
func TestWorkerWhoseTokenIsRefusedForGoodSaysSo(t *testing.T) {
	t.Parallel()
	lines := testserver.KeyLines("mail", time.Time{})
	late := strings.ReplaceAll(testserver.KeyLines("late", time.Now().Add(-time.Hour)), `queues = ["late*"]`, `queues = ["mail"]`)
	server, file := guarded(t, lines+late+testserver.KeyLines("other", time.Time{}))
	for name, want := range map[string]struct {
		is   error
		said string
	}{
		"late": {jobline.ErrUnauthenticated, "expired"}, "other": {jobline.ErrPermissionDenied, "verb work for queue mail"},
		"nobody": {jobline.ErrUnauthenticated, ""}, "func": {jobline.ErrUnauthenticated, "expired"}, "mail": {jobline.ErrUnauthenticated, ""},
	} {
		connection := jobline.Connection{Token: jobline.Token(testserver.Key(name))}
		if name == "func" {
			connection = jobline.Connection{TokenFunc: func(context.Context) (string, error) { return testserver.Key("late"), nil }}
		}
		log := &lockedBuffer{}
		worker := workerOf(t, server.Address, jobline.WorkerOptions{
			Connection: connection, Logger: slog.New(slog.NewTextHandler(log, nil)), SoftStop: time.Millisecond, HardStop: time.Millisecond,
		})
		jobline.Handle(worker, "mail", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(newContext(t)) }()
		if name == "mail" {
			<-worker.Connected()
			rewrite(t, file, late)
		}
		err := <-ended
		if !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.said) || !strings.Contains(log.String(), "refuses this worker") {
			t.Errorf("%s: %v\n%s", name, err, log.String())
		}
		if strings.Contains(log.String(), "jl_") {
			t.Errorf("%s: the log has a token: %s", name, log.String())
		}
		if name == "mail" {
			rewrite(t, file, lines+late+testserver.KeyLines("other", time.Time{}))
			time.Sleep(3 * time.Second) // the server looks every two
		}
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func ended() error {
	late, _ := status.New(codes.Unauthenticated, "the token has expired").WithDetails(
		&errdetails.ErrorInfo{Reason: "TOKEN_EXPIRED", Domain: "jobline"})
	return late.Err()
}

// TestFunctionReturnsTheTokenOfNow: it is asked in each call, and again when its token has ended; what goes wrong in it
// is Unavailable, and nothing was sent.
func TestFunctionReturnsTheTokenOfNow(t *testing.T) {
	var mu sync.Mutex
	var next []any // tokens, errors, and panics
	ask := func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(next) == 0 {
			return "good", nil
		}
		one := next[0]
		next = next[1:]
		switch one := one.(type) {
		case string:
			return one, nil
		case error:
			return "", one
		}
		panic("no token")
	}
	var shown []string
	f, client := startFake(t, nil, &jobline.ClientOptions{
		Connection: jobline.Connection{TokenFunc: ask}, Timeout: 2 * time.Second,
	})
	f.asked = func(ctx context.Context) error {
		given, _ := metadata.FromIncomingContext(ctx)
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, strings.Join(given.Get("authorization"), ","))
		if shown[len(shown)-1] == "Bearer late" {
			return ended()
		}
		return nil
	}
	f.answer = stored
	f.ends = []*joblinev1.WaitResponse{{Id: 7, State: jobline.StateCompleted}}
	ctx, broken := newContext(t), errors.New("the\x1b[31m issuer is\ndown")
	push := func(tokens ...any) ([]string, error) {
		mu.Lock()
		next, shown = tokens, nil
		mu.Unlock()
		_, err := client.PushMany(ctx, "q", []jobline.NewJob{{}}, nil)
		return shown, err
	}
	for what, one := range map[string]struct {
		tokens []any
		shown  []string
	}{
		"one":              {[]any{"a"}, []string{"Bearer a"}},
		"one that ended":   {[]any{"late", "b"}, []string{"Bearer late", "Bearer b"}},
		"errors at first":  {[]any{broken, broken, "c"}, []string{"Bearer c"}},
		"a panic at first": {[]any{0, "two words", "", "d"}, []string{"Bearer d"}},
	} {
		if got, err := push(one.tokens...); err != nil || !slices.Equal(got, one.shown) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	if got, err := push("late", "late", "b"); !errors.Is(err, jobline.ErrUnauthenticated) || len(got) != 1 {
		t.Errorf("the same again: %q, %v", got, err)
	}
	_, err := client.PushMany(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer own"), "q", []jobline.NewJob{{}}, nil)
	if shown[len(shown)-1] != "Bearer own" || err != nil {
		t.Errorf("one of the call itself: %q, %v", shown, err)
	}
	forever := slices.Repeat([]any{broken}, 1_000)
	got, err := push(forever...)
	var e *jobline.Error
	if !errors.Is(err, jobline.ErrNoToken) || !errors.Is(err, jobline.ErrUnavailable) || !errors.Is(err, broken) || len(got) > 0 ||
		!errors.As(err, &e) || !e.Definite() || !e.Retryable() ||
		e.Message != "TokenFunc: the\ufffd[31m issuer is down: the call was not sent" {
		t.Errorf("%q, %v", got, err)
	}
	mu.Lock()
	next = []any{"late", broken, "late", "a"}
	mu.Unlock()
	if end, err := client.WaitOne(ctx, 7); err != nil || end.State != jobline.StateCompleted {
		t.Errorf("a wait: %v, %v", end, err)
	}
	mu.Lock()
	next = slices.Repeat([]any{"late"}, 100)
	mu.Unlock()
	if _, err := client.WaitOne(ctx, 7); !errors.Is(err, jobline.ErrUnauthenticated) {
		t.Errorf("a wait whose tokens have all ended: %v", err)
	}
}
