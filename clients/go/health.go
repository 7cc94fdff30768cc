package jobline

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pacing"
)

const (
	// How long there may be no stream before a worker is unhealthy: a server that restarts takes seconds.
	streamDownMax = 10 * time.Second
	// Bounds of the health port, whoever calls it.
	healthConnections = 32
	healthHeaderBytes = 8 << 10
	healthReadTime    = 5 * time.Second
	healthWriteTime   = 10 * time.Second
	healthIdleTime    = time.Minute
)

// health is the health port of a worker.
type health struct {
	run      *workerRun
	listener net.Listener
	server   *http.Server
}

// listenHealth opens the health port at HOST:PORT; without a host on 127.0.0.1.
func listenHealth(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refuse("HealthAddress", "must be HOST:PORT or :PORT: %v", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, refuse("HealthAddress", "%v", err).because(err)
	}
	return &boundedListener{Listener: listener, places: make(chan struct{}, healthConnections)}, nil
}

func serveHealth(run *workerRun, listener net.Listener) *health {
	h := &health{run: run, listener: listener}
	h.server = &http.Server{
		Handler: h, MaxHeaderBytes: healthHeaderBytes,
		ReadTimeout: healthReadTime, WriteTimeout: healthWriteTime, IdleTimeout: healthIdleTime,
	}
	go func() {
		if err := h.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			run.log.Error("the health port is closed", "address", listener.Addr().String(), "error", err)
		}
	}()
	return h
}

func (h *health) close() { _ = h.server.Close() }

// ServeHTTP answers GET /healthz and GET /metrics.
func (h *health) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	isHealth := request.URL.Path == "/healthz"
	switch {
	case !isHealth && request.URL.Path != "/metrics":
		http.Error(reply, "not found: there are /healthz and /metrics", http.StatusNotFound)
	case request.Method != http.MethodGet:
		reply.Header().Set("Allow", http.MethodGet)
		http.Error(reply, "only GET", http.StatusMethodNotAllowed)
	case isHealth:
		h.healthz(reply)
	default:
		running, _ := h.run.runners.counts()
		_, _, isOpen := h.run.session.state()
		var text bytes.Buffer
		h.run.metrics.write(&text, isOpen, running, h.run.runners.size)
		reply.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = reply.Write(text.Bytes())
	}
}

func (h *health) healthz(reply http.ResponseWriter) {
	said := struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons,omitempty"`
	}{Status: "ok"}
	switch stage := h.run.drain.Stage(); {
	case stage == pacing.Stopped:
		said.Reasons = append(said.Reasons, "STOPPED")
	case stage != pacing.Working:
		said.Status = "draining"
	case h.run.session.downFor(time.Now()) > streamDownMax:
		said.Reasons = append(said.Reasons, "STREAM_DOWN")
	}
	code := http.StatusOK
	if said.Reasons != nil {
		said.Status, code = "unhealthy", http.StatusServiceUnavailable
	}
	reply.Header().Set("Content-Type", "application/json")
	reply.WriteHeader(code)
	_ = json.NewEncoder(reply).Encode(said)
}

// boundedListener accepts so many connections at a time; others wait in the system's queue.
type boundedListener struct {
	net.Listener
	places chan struct{}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	connection, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &boundedConnection{Conn: connection, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

type boundedConnection struct {
	net.Conn
	leave func()
}

func (c *boundedConnection) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
