package joblinetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	commandVariable = "JOBLINE_COMMAND"
	// Nothing is on PyPI yet: the server comes from a checkout, as the README of the project says.
	fromCheckout = "in a checkout of Jobline: `pip install './clients/python[cli]' '.[native]'`"
	install      = "the kit starts the server, whose command jobline is installed " + fromCheckout +
		"; put it into PATH, or set " + commandVariable + " or Options.Command"
	// A machine that is busy takes some seconds to start a server.
	startTime = time.Minute
	// What is kept of the server's log, to be shown when it ends.
	logBytesMax = 8 << 10
)

// server is a process that serves all tests of this one. It ends when its standard input does: with
// this process, however that ends.
type server struct {
	address string
	process *os.Process
	stdin   io.Closer
	log     *tail
	ended   chan struct{}
}

// commandOf returns the command that starts servers.
func commandOf(given string) (string, error) {
	if given == "" {
		given = os.Getenv(commandVariable)
	}
	if given == "" {
		given = "jobline"
	}
	found, err := exec.LookPath(given)
	if err != nil {
		return "", fmt.Errorf("no server to test with: %w; %s", err, install)
	}
	return found, nil
}

// startServer starts a server, and returns when it is ready.
func startServer(command string) (*server, error) {
	process := exec.Command(command, "dev", "--memory", "--clock=manual", "--port", "0", "--json", "--until-eof")
	s := &server{log: &tail{}, ended: make(chan struct{})}
	process.Stderr = s.log
	process.Env = environment()
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w; %s", command, err, install)
	}
	s.stdin, s.process = stdin, process.Process
	ready := make(chan string, 1)
	go func() {
		defer close(s.ended)
		readReady(stdout, ready)
		_ = process.Wait() // its log says why it ended
	}()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case s.address = <-ready:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("%s dev ended before it was ready (if it has no `dev`, install the server %s): %s", command, fromCheckout, s.log)
	case <-timer.C:
		_ = process.Process.Kill()
		return nil, fmt.Errorf("%s dev was not ready within %s\n%s", command, startTime, s.log)
	}
}

// environment returns that of this process without settings of Jobline: those of a server in production would
// hold for the one of the tests, too.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "JOBLINE_") })
}

// readReady sends the address in the line that says that a server is ready, and reads on, so that the
// server never waits for a reader.
func readReady(output io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var line struct{ Grpc string }
		_ = json.Unmarshal(lines.Bytes(), &line) // other lines have no address
		if line.Grpc != "" {
			ready <- line.Grpc
			break
		}
	}
	_, _ = io.Copy(io.Discard, output)
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// tail keeps the last of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	t.text = t.text[max(0, len(t.text)-logBytesMax):]
	return len(data), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// servers are those of this process, by command: one, unless tests ask for several.
var servers = struct {
	sync.Mutex
	byCommand map[string]*server
}{byCommand: map[string]*server{}}

// serverOf returns the server of a command; it starts one if there is none, or if it has ended.
func serverOf(given string) (*server, error) {
	command, err := commandOf(given)
	if err != nil {
		return nil, err
	}
	servers.Lock()
	defer servers.Unlock()
	if s := servers.byCommand[command]; s != nil && !s.hasEnded() {
		return s, nil
	}
	s, err := startServer(command)
	if err != nil {
		return nil, err
	}
	servers.byCommand[command] = s
	return s, nil
}

// discard ends a server that does not answer, whatever it does: the next test gets another one.
func (s *server) discard() {
	servers.Lock()
	defer servers.Unlock()
	for command, one := range servers.byCommand {
		if one == s {
			delete(servers.byCommand, command)
		}
	}
	_ = s.process.Kill() // it says so if it has ended
	_ = s.stdin.Close()
}

var errEnded = errors.New("the server has ended")
