package testserver

import (
	"errors"
	"testing"
)

// New starts a server that ends with the test, as Start does. The test is skipped where there is none to start.
func New(t testing.TB, arguments ...string) *Server {
	t.Helper()
	server, err := Start(arguments...)
	if errors.Is(err, ErrNoServer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}
