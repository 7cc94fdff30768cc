package jobline_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// The queue of the worker that is stopped.
const queueVariable = "JOBLINE_TEST_QUEUE"

// The worker that is stopped. Some of its handlers outlast the soft stop, and are interrupted.
func init() {
	roles["stops"] = func() {
		worker, err := jobline.NewWorker("", &jobline.WorkerOptions{
			Concurrency: 8, StopSignals: []os.Signal{syscall.SIGTERM}, Logger: quiet,
			SoftStop: 150 * time.Millisecond, HardStop: time.Second,
		})
		if err != nil {
			panic(err)
		}
		queue := os.Getenv(queueVariable)
		handle := func(ctx context.Context, job *jobline.Job[int]) (int, error) {
			pause := time.Duration(job.Payload%25) * time.Millisecond
			if job.Name == "long" {
				pause *= 12
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
			fmt.Println("ran", job.Payload, job.Attempt)
			return job.Payload, nil
		}
		jobline.Handle(worker, queue, "one", handle)
		jobline.Handle(worker, queue, "long", handle)
		jobline.Handle(worker, queue, "instant", func(_ context.Context, job *jobline.Job[int]) (jobline.NoResult, error) {
			fmt.Println("ran", job.Payload, job.Attempt)
			return jobline.NoResult{}, nil
		})
		options := &jobline.BatchHandlerOptions{Size: 10, Wait: 20 * time.Millisecond}
		jobline.HandleBatch(worker, queue, "batch", options, func(_ context.Context, batch *jobline.Batch[int, int]) error {
			time.Sleep(10 * time.Millisecond)
			for _, job := range batch.Jobs {
				fmt.Println("ran", job.Payload, job.Attempt)
				batch.Done(job, job.Payload)
			}
			return nil
		})
		fmt.Println("up")
		if err := worker.Run(context.Background()); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
}

// cost is what the stops of workers have cost.
type cost struct{ jobs, repeats, burned, stalls, lost int }

// TestSIGTERMCostsNoMoreThanSIGKILL (G21) stops worker processes at random moments, with jobs that run,
// batches that gather, and acks under way. JOBLINE_STOPS=50 does it 50 times instead of 4.
func TestSIGTERMCostsNoMoreThanSIGKILL(t *testing.T) {
	t.Parallel()
	rounds := 4
	if given := os.Getenv("JOBLINE_STOPS"); given != "" {
		rounds = must[int](t)(strconv.Atoi(given))
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			c := costOfStops(t, signal, rounds)
			t.Logf("%d × %s: %d jobs, %d run again, %d attempts burned, %d leases lost, %d jobs lost",
				rounds, signal, c.jobs, c.repeats, c.burned, c.stalls, c.lost)
			// A kill may cost repeats and leases, and nothing else; a polite stop nothing at all.
			if c.lost+c.burned > 0 || signal == syscall.SIGTERM && c.repeats+c.stalls > 0 {
				t.Errorf("%s cost too much: %+v", signal, c)
			}
		})
	}
}

func costOfStops(t *testing.T, signal syscall.Signal, rounds int) cost {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	var ids []uint64
	ran := map[int]int{}
	c := cost{}
	for range rounds {
		var news []jobline.NewJob
		for name, count := range map[string]int{"one": 40, "long": 10, "batch": 100, "instant": 350} {
			for range count {
				news = append(news, jobline.NewJob{Payload: len(ids) + len(news), Options: jobline.PushOptions{Name: name}})
			}
		}
		rand.Shuffle(len(news), func(i, j int) { news[i], news[j] = news[j], news[i] })
		shared := &jobline.PushManyOptions{PushOptions: jobline.PushOptions{Lease: 2 * time.Second, MaxStalls: 1_000}}
		for _, one := range must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, news, shared)) {
			ids = append(ids, one.ID)
		}
		stopOne(t, queue, func(process *os.Process) {
			time.Sleep(time.Duration(rand.IntN(300_000)) * time.Microsecond)
			_ = process.Signal(signal)
		}, ran, &c)
	}
	stopOne(t, queue, func(process *os.Process) {
		for some := range slices.Chunk(ids, 10_000) {
			for _, err := range client.Wait(ctx, some...) {
				if err != nil {
					t.Error(err)
				}
			}
		}
		_ = process.Signal(syscall.SIGTERM)
	}, ran, &c)
	c.jobs = len(ids)
	jobs := storedJobs(t, client, queue)
	for i, id := range ids {
		job := jobs[id]
		if job.GetState() != joblinev1.JobState_JOB_STATE_COMPLETED || ran[i] == 0 {
			c.lost++
		}
		c.repeats += max(0, ran[i]-1)
		c.burned += int(job.GetAttempts())
		c.stalls += int(job.GetStalls())
	}
	return c
}

// stopOne runs a worker process until it is stopped, and counts what it ran.
func stopOne(t *testing.T, queue string, stop func(*os.Process), ran map[int]int, c *cost) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), roleVariable+"=stops", queueVariable+"="+queue)
	output := must[io.ReadCloser](t)(process.StdoutPipe())
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case words[0] == "up":
			go stop(process.Process)
		case words[0] == "ran" && len(words) == 3:
			payload, _ := strconv.Atoi(words[1])
			ran[payload]++
			if words[2] != "1" {
				c.burned++
			}
		default:
			t.Errorf("the worker said %q", lines.Text())
		}
	}
	// Before its handler is set the signal ends the process: that is no stop of a worker.
	if err := process.Wait(); err != nil && process.ProcessState.ExitCode() != -1 {
		t.Fatalf("the worker ended with %v", err)
	}
}

// storedJobs returns all jobs of a queue by id.
func storedJobs(t *testing.T, client *jobline.Client, queue string) map[uint64]*joblinev1.Job {
	t.Helper()
	admin, jobs := joblinev1.NewJobAdminServiceClient(client.Conn()), map[uint64]*joblinev1.Job{}
	for token := ""; ; {
		page := must[*joblinev1.ListJobsResponse](t)(admin.ListJobs(newContext(t), &joblinev1.ListJobsRequest{
			Filter: &joblinev1.JobFilter{Queue: queue}, PageSize: 1_000, PageToken: token,
		}))
		for _, job := range page.GetJobs() {
			jobs[job.GetId()] = job
		}
		if token = page.GetNextPageToken(); token == "" {
			return jobs
		}
	}
}
