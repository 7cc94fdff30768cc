// Package testserver runs a real server in a process of its own, for the tests of this module.
package testserver

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNoServer says that this machine has no server to start: run `make setup` in the repository.
var ErrNoServer = errors.New("no jobline command: run `make setup`, or set JOBLINE_COMMAND")

// Server is a server process with a directory of its own.
type Server struct {
	// Address is HOST:PORT; it stays the same over restarts.
	Address   string
	dir       string
	arguments []string
	process   *exec.Cmd
}

// Command returns the command that starts servers.
func Command() (string, error) {
	if given := os.Getenv("JOBLINE_COMMAND"); given != "" {
		return given, nil
	}
	_, here, _, _ := runtime.Caller(0)
	found := filepath.Join(filepath.Dir(here), "../../../../.venv/bin/jobline")
	if _, err := os.Stat(found); err != nil {
		return "", ErrNoServer
	}
	return found, nil
}

// Start starts a server on a fresh directory and a free port, with these arguments of `serve` beside its own, and
// returns when it is ready.
func Start(arguments ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "jobline-go-")
	if err != nil {
		return nil, err
	}
	s := &Server{Address: "127.0.0.1:0", dir: dir, arguments: arguments}
	if err := s.Restart(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// Restart starts the server again, on the same directory and port.
func (s *Server) Restart() error {
	command, err := Command()
	if err != nil {
		return err
	}
	process := exec.Command(command, append([]string{"serve", "--data", filepath.Join(s.dir, "data"),
		"--listen", s.Address, "--http", "", "--ballast-bytes", "0", "--low-space-bytes", "0",
		"--log-level", "warning"}, s.arguments...)...)
	process.Stderr = os.Stderr
	process.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "JOBLINE_") // a server refuses settings that it does not know
	})
	process.SysProcAttr = diesWithTest()
	output, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	s.process = process
	return s.awaitReady(output)
}

func (s *Server) awaitReady(output io.Reader) error {
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(output)
		err := errors.New("the server ended before it was ready")
		for lines.Scan() {
			if address := addressIn(lines.Text()); address != "" {
				s.Address, err = address, nil
				break
			}
		}
		ready <- err
		for lines.Scan() { // so that it never waits for a reader
		}
	}()
	select {
	case err := <-ready:
		return err
	case <-time.After(5 * time.Minute): // a machine that tests much else at the same time
		s.Kill()
		return errors.New("the server was not ready within five minutes")
	}
}

// addressIn returns the address in the line that says that a server is ready.
func addressIn(line string) string {
	var ready struct{ Grpc string }
	_ = json.Unmarshal([]byte(line), &ready) // other lines have no address
	return ready.Grpc
}

// Kill ends the server as kill -9 does.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Pause stops the process without ending it; Continue lets it go on.
func (s *Server) Pause() error { return s.process.Process.Signal(syscall.SIGSTOP) }

// Continue lets a paused server go on.
func (s *Server) Continue() error { return s.process.Process.Signal(syscall.SIGCONT) }

// Close ends the server and removes its directory.
func (s *Server) Close() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}
