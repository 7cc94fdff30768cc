package jobline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/internal/pauses"
	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// A stream that lived for less is followed by the usual pause, even if the server asked to move at once.
	livedMin = time.Second
	// Names of jobs without a handler that are logged of one frame.
	unhandledMax = 100
	// What a worker stays on a stream that is to end, until its settles are confirmed.
	patienceMin, patienceMax = 30 * time.Second, time.Hour
)

// streamLoop keeps one stream open at a time, and opens another when it breaks. Each has a channel of
// its own, so that a new stream never inherits a dead connection. One goroutine reads a stream, and
// one writes it; the latter sends the heartbeats, whatever the handlers do.
type streamLoop struct {
	shows      *identity
	target     string
	session    *sharedSession
	take       func(*stream.Received)
	log        *slog.Logger
	life       context.Context
	end        context.CancelFunc
	reconnects *atomic.Int64

	mu     sync.Mutex
	hangUp context.CancelFunc // of the current stream; nil without one

	// Of the reader alone.
	wasConnected bool
	lostAt       time.Time
	isOpened     bool
	goaway       *joblinev1.StreamGoaway
	leaveAt      time.Time
}

// endStream ends the current stream, if any; another one follows.
func (l *streamLoop) endStream() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hangUp != nil {
		l.hangUp()
	}
}

// isCalling reports whether a stream is open or opening.
func (l *streamLoop) isCalling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hangUp != nil
}

func (l *streamLoop) setHangUp(hangUp context.CancelFunc) {
	l.mu.Lock()
	l.hangUp = hangUp
	l.mu.Unlock()
}

// run returns when the worker has stopped, or the error that makes a stream impossible.
func (l *streamLoop) run() error {
	tries, renewals := 0, 0
	for l.life.Err() == nil && !l.session.isOver() {
		l.isOpened, l.goaway = false, nil
		began := time.Now()
		err := l.oneStream()
		// A stream that opens and breaks at once is no sign that the next will do better.
		tries++
		if l.isOpened && time.Since(began) > pauses.Reconnect.Longest {
			tries = 0
		}
		isLate := err != nil && l.shows.mayRenew(err) && !l.isOpened
		if !isLate {
			renewals = 0
		} else {
			renewals++
		}
		if err != nil && isFatal(err) && !l.isOpened && !(isLate && renewals < renewalsMax) {
			l.log.Error("the server refuses this worker, which stops", "server", l.target, "error", err)
			return err
		}
		if err != nil && isMistake(err) && l.isOpened {
			l.log.Error("the server refused what was said; it is not said again", "error", err)
			l.session.locked((*stream.Session).HandleRefusal)
		}
		if err != nil && err.Reason == "SESSION_TAKEN" {
			l.session.locked((*stream.Session).HandleTaken)
		}
		l.pause(err, tries, time.Since(began))
	}
	return nil
}

// isFatal reports a refusal of a stream that no second try changes; isMistake one of something on an
// open stream: sent again, it would be refused again.
func isFatal(e *Error) bool {
	return e.Is(ErrInvalidArgument) || e.Is(ErrNotServed) || e.Is(ErrPermissionDenied) ||
		e.Is(ErrTooLarge) || e.Is(ErrUnauthenticated)
}

func isMistake(e *Error) bool {
	return e.Is(ErrInvalidArgument) || e.Is(ErrNotServed) || e.Is(ErrProtocolMistake) || e.Is(ErrTooLarge)
}

// pause waits before the next stream, as the server or the number of tries demands. A server that asks each stream to
// move as soon as it is open is not called any faster than one that cannot be reached.
func (l *streamLoop) pause(err *Error, tries int, lived time.Duration) {
	if l.life.Err() != nil || l.session.isOver() {
		return
	}
	pause := pauses.Reconnect.After(max(tries, 1))
	if l.goaway != nil {
		delay := min(l.goaway.GetRetryDelay().AsDuration(), retryAfterMax)
		delay = time.Duration(float64(delay) * (0.5 + rand.Float64()))
		if lived < livedMin {
			delay = max(delay, pause)
		}
		pause = delay
	} else if err != nil {
		pause = max(pause, err.RetryAfter)
		what := "cannot reach the server"
		if l.isOpened {
			what = "the connection broke"
		}
		l.log.Warn(what, "server", l.target, "retry_in", pause, "error", err)
	}
	sleep(l.life, pause)
}

// oneStream opens a stream and reads it to its end; it returns the error that ended it, if any.
func (l *streamLoop) oneStream() *Error {
	channel, err := l.shows.open(l.target)
	if err != nil {
		return errorOf(l.life, err)
	}
	defer func() { _ = channel.Close() }()
	ctx, cancel := context.WithCancel(l.life)
	defer cancel()
	l.setHangUp(cancel)
	defer l.setHangUp(nil)
	l.session.connect()
	defer l.session.disconnect()
	call, err := joblinev1.NewJobServiceClient(channel).Stream(ctx)
	if err != nil {
		return errorOf(ctx, err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write(ctx, call)
	}()
	err = l.read(call)
	cancel()
	<-written
	if l.isOpened && l.lostAt.IsZero() {
		l.lostAt = time.Now()
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return errorOf(l.life, err)
}

// write sends frames until there is no more to send, or the stream ends; its reader knows why.
func (l *streamLoop) write(ctx context.Context, call joblinev1.JobService_StreamClient) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		frames, pause, isLast := l.session.frames()
		for _, frame := range frames {
			if call.Send(frame) != nil {
				return
			}
		}
		if isLast {
			_ = call.CloseSend()
			return
		}
		if len(frames) > 0 {
			// Let the runners settle more: one large settle costs the server less than many small ones.
			runtime.Gosched()
			continue
		}
		timer.Reset(max(pause, 0))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.session.wake:
		}
	}
}

func (l *streamLoop) read(call joblinev1.JobService_StreamClient) error {
	for {
		frame, err := call.Recv()
		if err != nil {
			return err
		}
		received := l.session.handle(frame)
		if received.Wrong != "" {
			return unexpected("%s", received.Wrong)
		}
		if received.IsOpened {
			l.isOpened = true
			l.logOpened(received)
		}
		l.take(received)
		if received.Goaway != nil {
			now := time.Now()
			l.goaway, l.leaveAt = received.Goaway, now.Add(goawayPatience(received.Goaway, now))
			l.log.Info("the server asks to move", "reason", shortLine(received.Goaway.GetReason()))
		}
		if received.IsTooMany {
			return unexpected("the server sent more jobs than the window allows: the rest is given back")
		}
		if l.goaway != nil && l.mayMove(l.goaway) {
			return nil
		}
	}
}

// mayMove reports whether to leave before the server ends the stream. A worker that stays (no delay)
// resumes the session at once, leases and all; one that leaves waits for its confirms first.
func (l *streamLoop) mayMove(goaway *joblinev1.StreamGoaway) bool {
	return goaway.GetRetryDelay().AsDuration() == 0 || l.session.isConfirmed() ||
		!time.Now().Before(l.leaveAt)
}

// goawayPatience returns for how long from now on to wait for the end by the server. It ends the stream at its close
// time by its own clock; where one of the two clocks is wrong, the worker leaves neither at once nor never.
func goawayPatience(goaway *joblinev1.StreamGoaway, now time.Time) time.Duration {
	return min(max(goaway.GetCloseTime().AsTime().Sub(now), patienceMin), patienceMax)
}

func (l *streamLoop) logOpened(received *stream.Received) {
	switch {
	case !l.wasConnected:
		l.log.Info("connected", "server", l.target)
	case !l.lostAt.IsZero():
		l.reconnects.Add(1)
		l.log.Info("connected again", "server", l.target, "after", time.Since(l.lostAt), "leases_kept", received.IsResumed)
	}
	l.wasConnected, l.lostAt = true, time.Time{}
}
