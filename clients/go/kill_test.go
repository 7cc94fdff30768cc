package jobline_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
)

// runLog is which deliveries of which jobs ran, and when.
type runLog struct {
	mu   sync.Mutex
	runs map[int][]uint64 // payload → deliveries that ended well
	now  map[int]int      // payload → handlers that run
	both []int            // payloads that ran twice at a time
}

func newRunLog() *runLog { return &runLog{runs: map[int][]uint64{}, now: map[int]int{}} }

func (l *runLog) begin(payload int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[payload]++
	if l.now[payload] > 1 {
		l.both = append(l.both, payload)
	}
}

func (l *runLog) end(payload int, delivery uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now[payload]--
	l.runs[payload] = append(l.runs[payload], delivery)
}

func (l *runLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

// TestKilledServersLoseNothing kills the server under producers and a worker. All must work again by
// themselves; what was acknowledged runs; nothing is pushed twice, and nothing runs twice while its lease is
// valid. JOBLINE_KILLS=50 does it 50 times instead of 3.
func TestKilledServersLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := 3
	if given := os.Getenv("JOBLINE_KILLS"); given != "" {
		rounds = must[int](t)(strconv.Atoi(given))
	}
	server, ctx := testserver.New(t), newContext(t)
	client := clientOf(t, server.Address, &jobline.ClientOptions{Timeout: 2 * time.Minute, Logger: quiet})
	log := newRunLog()
	worker := workerOf(t, server.Address, jobline.WorkerOptions{Concurrency: 8})
	jobline.Handle(worker, "kills", "", func(_ context.Context, job *jobline.Job[int]) (int, error) {
		log.begin(job.Payload)
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		log.end(job.Payload, job.Delivery)
		return job.Payload, nil
	})
	start(t, worker)

	halt := make(chan struct{})
	var producers sync.WaitGroup
	var mu sync.Mutex
	ids := map[uint64]int{}
	for p := range 4 {
		producers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-halt:
					return
				default:
				}
				payload := p*1_000_000 + n
				pushed, err := client.Push(ctx, "kills", payload, nil)
				if err != nil {
					t.Errorf("push %d: %v", payload, err)
					return
				}
				mu.Lock()
				if other, isThere := ids[pushed.ID]; isThere {
					t.Errorf("id %d is of %d and of %d", pushed.ID, other, payload)
				}
				ids[pushed.ID] = payload
				mu.Unlock()
			}
		})
	}
	for range rounds {
		before := log.count()
		eventually(t, "jobs run again", func() bool { return log.count() > before+20 })
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		server.Kill()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	before := log.count()
	eventually(t, "jobs run after the last restart", func() bool { return log.count() > before+20 })
	close(halt)
	producers.Wait()
	eventually(t, "all that was pushed has run", func() bool { return log.count() >= len(ids) })
	log.check(t, ids)
}

func (l *runLog) check(t *testing.T, ids map[uint64]int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	payloads := map[int]bool{}
	for _, payload := range ids {
		payloads[payload] = true
		if len(l.runs[payload]) == 0 {
			t.Errorf("job %d was acknowledged and never ran", payload)
		}
	}
	for payload, deliveries := range l.runs {
		if !payloads[payload] {
			t.Errorf("job %d ran, and its push was not answered", payload)
		}
		seen := map[uint64]bool{}
		for _, delivery := range deliveries {
			if seen[delivery] {
				t.Errorf("job %d ran twice under one lease: %v", payload, deliveries)
			}
			seen[delivery] = true
		}
	}
	if len(l.both) > 0 {
		t.Errorf("jobs ran twice at a time: %v", l.both)
	}
	t.Logf("%d jobs, %d runs", len(ids), len(l.runs))
}

// TestPausedServerIsTakenUpAgain stops the process of the server: its connection stays, and nothing comes.
func TestPausedServerIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	server, ctx := testserver.New(t), newContext(t)
	client := clientOf(t, server.Address, &jobline.ClientOptions{Timeout: 2 * time.Minute, Logger: quiet})
	worker := workerOf(t, server.Address, jobline.WorkerOptions{})
	jobline.Handle(worker, "q", "", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload, nil })
	start(t, worker)
	if err := client.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := jobline.PushAndWait[int](ctx, client, "q", 1, nil)
		answered <- err
	}()
	time.Sleep(7 * time.Second) // longer than one try of a push may take
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
