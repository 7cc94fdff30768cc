package jobline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
)

// roles are what this binary does when a test starts it again as a process of its own.
var roles = map[string]func(){}

const roleVariable = "JOBLINE_TEST_ROLE"

var shared *testserver.Server

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		roles[role]()
		return
	}
	server, err := testserver.Start()
	switch {
	case errors.Is(err, testserver.ErrNoServer):
		fmt.Fprintln(os.Stderr, "tests that need a server are skipped:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		shared = server
		_ = os.Setenv("JOBLINE_SERVER", server.Address) // for the examples
	}
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}

// newContext ends when the test should long be over.
func newContext(t testing.TB) context.Context {
	t.Helper()
	limit := 4 * time.Minute
	if os.Getenv("JOBLINE_KILLS") != "" || os.Getenv("JOBLINE_STOPS") != "" {
		limit = time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// newClient is a client of the server that all tests share.
func newClient(t testing.TB, options *jobline.ClientOptions) *jobline.Client {
	t.Helper()
	if shared == nil {
		t.Skip(testserver.ErrNoServer)
	}
	return clientOf(t, shared.Address, options)
}

func clientOf(t testing.TB, address string, options *jobline.ClientOptions) *jobline.Client {
	t.Helper()
	client, err := jobline.New(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var queueNumber atomic.Int64

// newQueue is the name of a queue that no other test uses.
func newQueue(t testing.TB) string {
	name := strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())
	return fmt.Sprintf("%s-%d", name, queueNumber.Add(1))
}

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
