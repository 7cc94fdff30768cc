// Program peer-loads puts one load on the server of one peer, and prints what was done as a line of JSON:
//
//	{"jobs": 120000, "seconds": 1.5, "counted": 120000}
//
// counted is what the server said of it afterwards: how many jobs of the queue it holds more, or, after a
// drain, how many it holds less. Each load has a queue of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	payloadBytes = 100
	manyCallers  = 64
	// What a whole load may take, which ends one that waits for ever.
	patience = 2 * time.Minute
)

// peer is one system under load, and the queue that the load has there.
type peer interface {
	// caller returns what one of the callers pushes with.
	caller(ctx context.Context) (caller, error)
	// waiting returns how many jobs of the queue the server holds that have not ended.
	waiting(ctx context.Context) (int64, error)
	// drain works on jobs of the queue until that many have been acked.
	drain(ctx context.Context, jobs int64) error
}

// caller pushes: each method returns when the server has answered for all of it.
type caller interface {
	push(ctx context.Context) error
	bulk(ctx context.Context, jobs int) error
}

// errNoBulk says that a peer has no call that pushes many jobs.
var errNoBulk = errors.New("there is no bulk push")

// target is where a load goes, and how.
type target struct {
	address, queue, variant string
}

// has returns whether the load runs in a variant of the peer's own, such as "atomic".
func (t target) has(variant string) bool { return t.variant == variant }

var peers = map[string]func(context.Context, target) (peer, error){
	"asynq":      newAsynq,
	"beanstalkd": newBeanstalkd,
	"jobline":    newJobline,
	"nats":       newNATS,
	"river":      newRiver,
}

var payload = func() []byte {
	bytes := make([]byte, payloadBytes)
	for i := range bytes {
		bytes[i] = 'a' + byte(i%26)
	}
	return bytes
}()

// load is what the command line asks for.
type load struct {
	kind           string
	seconds        float64
	jobs           int64
	callers, batch int
}

// report is what is printed.
type report struct {
	Jobs    int64   `json:"jobs"`
	Seconds float64 `json:"seconds"`
	Counted int64   `json:"counted"`
}

func main() {
	var name string
	var to target
	var what load
	flag.StringVar(&name, "peer", "", "which peer")
	flag.StringVar(&to.address, "address", "", "where its server listens")
	flag.StringVar(&to.queue, "queue", "bench", "the queue of this load, which nothing else uses")
	flag.StringVar(&to.variant, "variant", "", "a way of the peer's own")
	flag.StringVar(&what.kind, "load", "", "bulk, many, single or drain")
	flag.Float64Var(&what.seconds, "seconds", 1, "how long to push")
	flag.Int64Var(&what.jobs, "jobs", 0, "how many jobs to drain, or to push in place of seconds")
	flag.IntVar(&what.callers, "callers", 16, "callers of bulk")
	flag.IntVar(&what.batch, "batch", 1_000, "jobs a call of bulk")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, name, to, what); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, to target, what load) error {
	open, ok := peers[name]
	if !ok {
		return fmt.Errorf("there is no peer %q", name)
	}
	system, err := open(ctx, to)
	if err != nil {
		return err
	}
	measure := map[string]func(context.Context, peer, load) (report, error){
		"bulk": push, "many": push, "single": push, "drain": drain,
	}[what.kind]
	if measure == nil {
		return fmt.Errorf("there is no load %q", what.kind)
	}
	done, err := measure(ctx, system, what)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

// push has callers push until the time is over or enough was pushed, and counts what the server holds.
func push(ctx context.Context, system peer, what load) (report, error) {
	callers, batch := map[string]int{"single": 1, "many": manyCallers}[what.kind], 1
	if what.kind == "bulk" {
		callers, batch = what.callers, what.batch
	}
	var first int64
	if what.jobs == 0 {
		// A push of each caller is not timed: it opens connections, or has memory grow.
		first = int64(callers * batch)
		warming := load{kind: what.kind, jobs: first}
		if _, _, err := pushes(ctx, system, warming, callers, batch); err != nil {
			return report{}, err
		}
	}
	jobs, seconds, err := pushes(ctx, system, what, callers, batch)
	if err != nil {
		return report{}, err
	}
	counted, err := system.waiting(ctx)
	return report{jobs, seconds, counted - first}, err
}

func pushes(ctx context.Context, system peer, what load, count, batch int) (int64, float64, error) {
	callers := make([]caller, count)
	for i := range callers {
		made, err := system.caller(ctx)
		if err != nil {
			return 0, 0, err
		}
		callers[i] = made
	}
	var begun, pushed atomic.Int64
	failed := make(chan error, count)
	began := time.Now()
	end := began.Add(time.Duration(what.seconds * float64(time.Second)))
	goesOn := func() bool {
		if what.jobs > 0 {
			return begun.Add(int64(batch)) <= what.jobs
		}
		return time.Now().Before(end)
	}
	var group sync.WaitGroup
	for _, one := range callers {
		group.Go(func() {
			for goesOn() {
				if err := pushOnce(ctx, one, batch); err != nil {
					failed <- err
					return
				}
				pushed.Add(int64(batch))
			}
		})
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	select {
	case err := <-failed:
		return 0, 0, err
	default:
		return pushed.Load(), seconds, nil
	}
}

func pushOnce(ctx context.Context, one caller, batch int) error {
	if batch == 1 {
		return one.push(ctx)
	}
	return one.bulk(ctx, batch)
}

// drain fills the queue, and then times how long it takes to work on all of it.
func drain(ctx context.Context, system peer, what load) (report, error) {
	callers, batch := what.callers, min(what.batch, int(what.jobs))
	jobs, _, err := pushes(ctx, system, what, callers, batch)
	if errors.Is(err, errNoBulk) {
		jobs, _, err = pushes(ctx, system, what, manyCallers, 1)
	}
	if err != nil {
		return report{}, err
	}
	before, err := system.waiting(ctx)
	if err != nil {
		return report{}, err
	}
	began := time.Now()
	if err := system.drain(ctx, jobs); err != nil {
		return report{}, err
	}
	after, err := empty(ctx, system)
	return report{jobs, time.Since(began).Seconds(), before - after}, err
}

// empty waits until the server says that it holds no job any more: acks may be under way.
func empty(ctx context.Context, system peer) (int64, error) {
	for {
		left, err := system.waiting(ctx)
		if err != nil || left == 0 {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// countdown is done when so many handlers have returned.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func newCountdown(jobs int64) *countdown {
	c := &countdown{done: make(chan struct{})}
	c.left.Store(jobs)
	return c
}

func (c *countdown) tick() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

func (c *countdown) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d jobs are left: %w", c.left.Load(), ctx.Err())
	}
}
