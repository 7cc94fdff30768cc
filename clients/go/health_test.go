package jobline_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// ask returns the status and the body of a request to a health port.
func ask(t *testing.T, method, address, path string) (int, string) {
	t.Helper()
	request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil))
	reply := must[*http.Response](t)(http.DefaultClient.Do(request))
	defer func() { _ = reply.Body.Close() }()
	return reply.StatusCode, string(must[[]byte](t)(io.ReadAll(reply.Body)))
}

func TestHealthPortTellsOfStateAndCounts(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{HealthAddress: ":0", Concurrency: 3})
	free := make(chan struct{})
	jobline.Handle(worker, queue, jobline.AnyName, func(_ context.Context, job *jobline.Job[int]) (int, error) {
		switch job.Name {
		case "failed":
			return 0, errors.New("no luck")
		case "dead":
			return 0, jobline.Dead("for good")
		case "cancelled":
			return 0, jobline.Cancel("not needed")
		case "retried":
			return 0, jobline.Retry(time.Hour)
		case "snoozed":
			return 0, jobline.Snooze(time.Hour)
		case "blocked":
			<-free
		}
		return 1, nil
	})
	stop := start(t, worker)
	at := worker.HealthAddress()
	if code, said := ask(t, "GET", at, "/healthz"); code != 200 || said != "{\"status\":\"ok\"}\n" || !strings.HasPrefix(at, "127.0.0.1:") {
		t.Errorf("at %s it said %d %q", at, code, said)
	}
	for _, name := range []string{"completed", "failed", "dead", "cancelled", "retried", "snoozed", `a "name"`, "blocked"} {
		must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{Name: name}))
	}
	for _, line := range []string{
		"jobline_worker_up 1", "jobline_worker_slots 3", "jobline_worker_running_jobs 1",
		`jobline_worker_settled_jobs_total{outcome="completed"} 2`, `jobline_worker_settled_jobs_total{outcome="failed"} 1`,
		`jobline_worker_settled_jobs_total{outcome="dead"} 1`, `jobline_worker_settled_jobs_total{outcome="cancelled"} 1`,
		`jobline_worker_settled_jobs_total{outcome="retried"} 1`, `jobline_worker_settled_jobs_total{outcome="snoozed"} 1`,
		`jobline_worker_settled_jobs_total{outcome="rate_limited"} 0`, `jobline_worker_settled_jobs_total{outcome="released"} 0`,
		`jobline_worker_handler_seconds_bucket{name="completed",le="0.005"} 1`,
		`jobline_worker_handler_seconds_bucket{name="a \"name\"",le="+Inf"} 1`, `jobline_worker_handler_seconds_count{name="dead"} 1`,
		"jobline_worker_reconnects_total 0", "jobline_worker_abandoned_handlers_total 0",
		"# TYPE jobline_worker_handler_seconds histogram",
	} {
		eventually(t, line, func() bool {
			_, said := ask(t, "GET", at, "/metrics")
			return strings.Contains(said, line+"\n")
		})
	}
	for path, method := range map[string]string{"/": "GET", "/healthz/": "GET"} {
		if code, _ := ask(t, method, at, path); code != http.StatusNotFound {
			t.Errorf("%s %s is %d", method, path, code)
		}
	}
	for _, method := range []string{"POST", "HEAD", "DELETE"} {
		if code, _ := ask(t, method, at, "/metrics"); code != http.StatusMethodNotAllowed {
			t.Errorf("%s is %d", method, code)
		}
	}
	worker.Stop()
	eventually(t, "it drains", func() bool {
		code, said := ask(t, "GET", at, "/healthz")
		return code == 200 && said == "{\"status\":\"draining\"}\n"
	})
	close(free)
	stop()
	if _, err := http.Get("http://" + at + "/healthz"); err == nil {
		t.Error("the port is open after the worker's end")
	}
}

func TestHealthPortTellsOfAMissingStream(t *testing.T) {
	worker := workerOf(t, "127.0.0.1:1", jobline.WorkerOptions{HealthAddress: "localhost:0"})
	jobline.Handle(worker, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	eventually(t, "it listens", func() bool { return worker.HealthAddress() != "" })
	at := worker.HealthAddress()
	if code, _ := ask(t, "GET", at, "/healthz"); code != 200 {
		t.Errorf("it is %d at the start", code)
	}
	eventually(t, "it runs", func() bool { code, _ := ask(t, "GET", at, "/metrics"); return code == 200 })
	jobline.PretendDownFor(worker, 11*time.Second)
	if code, said := ask(t, "GET", at, "/healthz"); code != 503 || said != "{\"status\":\"unhealthy\",\"reasons\":[\"STREAM_DOWN\"]}\n" {
		t.Errorf("it said %d %q", code, said)
	}
	if _, said := ask(t, "GET", at, "/metrics"); !strings.Contains(said, "jobline_worker_up 0\n") {
		t.Errorf("it said %q", said)
	}
	worker.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	taken := workerOf(t, "127.0.0.1:1", jobline.WorkerOptions{HealthAddress: "no address"})
	jobline.Handle(taken, "q", "", func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	if err := taken.Run(t.Context()); !errors.Is(err, jobline.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}

func TestMetricsTellAHundredNamesApart(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{HealthAddress: ":0"})
	jobline.Handle(worker, queue, jobline.AnyName, func(context.Context, *jobline.Job[int]) (int, error) { return 1, nil })
	start(t, worker)
	var news []jobline.NewJob
	for i := range 150 {
		news = append(news, jobline.NewJob{Payload: i, Options: jobline.PushOptions{Name: strings.Repeat("n", i+1)}})
	}
	must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, news, nil))
	eventually(t, "all are counted", func() bool {
		_, said := ask(t, "GET", worker.HealthAddress(), "/metrics")
		return strings.Contains(said, `handler_seconds_count{name="other"} 50`) && strings.Count(said, "handler_seconds_count{") == 101
	})
}
