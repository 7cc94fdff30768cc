package jobline_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// ring has a key for each group, named after it, and "shared" for jobs without one.
func newRing() *jobline.KeyMap {
	keys := map[string][]byte{}
	for i, id := range []string{"shared", "a", "b"} {
		keys[id] = bytes.Repeat([]byte{byte(i + 1)}, 32)
	}
	return jobline.NewKeyMap(keys, func(group string) string {
		if group == "" {
			return "shared"
		}
		return group
	})
}

func newCodec(t testing.TB, ring jobline.KeyRing) *jobline.Codec {
	t.Helper()
	return must[*jobline.Codec](t)(jobline.NewCodec(jobline.CodecOptions{
		Keys: ring, HashedTags: []string{"email"}, TagKey: bytes.Repeat([]byte{9}, 32),
	}))
}

func storedJob(t testing.TB, client *jobline.Client, id uint64) *joblinev1.Job {
	t.Helper()
	request := &joblinev1.GetJobRequest{Job: &joblinev1.GetJobRequest_Id{Id: id}}
	admin := joblinev1.NewJobAdminServiceClient(client.Conn())
	return must[*joblinev1.GetJobResponse](t)(admin.GetJob(newContext(t), request)).GetJob()
}

const secret = "nobody may read this, not in the journal and not in the result"

func TestServerSeesOnlySealedPayloadsAndResults(t *testing.T) {
	ctx, queue, codec := newContext(t), newQueue(t), newCodec(t, newRing())
	seen := ""
	client := newClient(t, &jobline.ClientOptions{Codec: codec, Middleware: []jobline.PushMiddleware{func(next jobline.PushFunc) jobline.PushFunc {
		return func(ctx context.Context, jobs []*jobline.Outgoing) ([]jobline.Pushed, error) {
			defer func() { seen = string(jobs[0].Payload) }() // after the push: still as it was
			return next(ctx, jobs)
		}
	}}})
	worker := newWorker(t, jobline.WorkerOptions{Codec: codec})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[mail]) (mail, error) {
		if job.Attempt == 1 {
			if err := errors.Join(job.SaveCheckpoint(secret), job.Partial(secret)); err != nil {
				return mail{}, err
			}
			return mail{}, jobline.Retry(0).Because(errors.New("once more"))
		}
		var left string
		if _, err := job.Checkpoint(&left); err != nil || left != secret || job.ContentType != "application/json" {
			return mail{}, errors.New("the checkpoint or the type is wrong")
		}
		return job.Payload, nil
	})
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, mail{secret}, &jobline.PushOptions{
		Group: "a", Tags: []string{"email:a@b.c", "eu"}, Headers: map[string]string{"h": "1"},
	}))
	if !strings.Contains(seen, secret) {
		t.Errorf("middleware saw %q", seen)
	}
	start(t, worker)
	pieces := 0
	for piece, err := range client.Partials(ctx, pushed.ID) {
		if pieces++; err != nil || !strings.Contains(string(piece.Data), secret) {
			t.Errorf("a piece is %q: %v", piece.Data, err)
		}
	}
	end := must[jobline.JobEnd](t)(client.WaitOne(ctx, pushed.ID))
	if got, err := jobline.ResultOf[mail](end); err != nil || got.To != secret {
		t.Errorf("got %+v, %v", got, err)
	}
	job := storedJob(t, client, pushed.ID)
	for what, data := range map[string][]byte{"payload": job.GetPayload(), "result": job.GetResult(), "checkpoint": job.GetCheckpoint()} {
		if len(data) == 0 || bytes.Contains(data, []byte("nobody")) {
			t.Errorf("the server has the %s %q", what, data)
		}
	}
	o := job.GetOptions()
	if o.GetContentType() != jobline.SealedType || o.GetHeaders()[jobline.KeyHeader] != "a" || o.GetHeaders()["h"] != "1" {
		t.Errorf("the server has %v", o)
	}
	if want := codec.Tag("email", "a@b.c"); len(o.GetTags()) != 2 || (o.GetTags()[0] != want && o.GetTags()[1] != want) {
		t.Errorf("the tags are %q", o.GetTags())
	}
}

func TestErasedKeyEndsItsJobsAndHidesTheirResults(t *testing.T) {
	ctx, queue, ring := newContext(t), newQueue(t), newRing()
	codec := newCodec(t, ring)
	client := newClient(t, &jobline.ClientOptions{Codec: codec})
	push := func(name, group string) uint64 {
		return must[jobline.Pushed](t)(client.Push(ctx, queue, 7, &jobline.PushOptions{Name: name, Group: group})).ID
	}
	erase := func(_ context.Context, job *jobline.Job[int]) (int, error) {
		if job.Name == "erases" {
			ring.Drop("b")
		}
		return job.Payload, nil
	}
	worker := newWorker(t, jobline.WorkerOptions{Codec: codec, Concurrency: 1})
	jobline.Handle(worker, queue, "", erase)
	jobline.Handle(worker, queue, "erases", erase)
	jobline.HandleBatch(worker, queue, "batch", nil, func(_ context.Context, batch *jobline.Batch[int, int]) error {
		for _, job := range batch.Jobs {
			batch.Done(job, job.Payload)
		}
		return nil
	})
	done := push("", "a")
	start(t, worker)
	if end := must[jobline.JobEnd](t)(client.WaitOne(ctx, done)); end.Err() != nil || string(end.Result) != "7" {
		t.Errorf("it ended as %+v", end)
	}
	// Its own key is erased while it runs, and before the others begin.
	ids := []uint64{push("erases", "b"), 0, 0}
	must[jobline.JobEnd](t)(client.WaitOne(ctx, ids[0]))
	ring.Drop("a")
	if _, err := client.WaitOne(ctx, done); !errors.Is(err, jobline.ErrKeyErased) || errors.Is(err, jobline.ErrRefused) == jobline.Retryable(err) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Push(ctx, queue, 7, &jobline.PushOptions{Group: "a"}); !errors.Is(err, jobline.ErrKeyErased) {
		t.Errorf("got %v", err)
	}
	other := newClient(t, &jobline.ClientOptions{Codec: newCodec(t, newRing())}) // who has the key still
	for i, name := range []string{"", "batch"} {
		ids[i+1] = must[jobline.Pushed](t)(other.Push(ctx, queue, 7, &jobline.PushOptions{Name: name, Group: "a"})).ID
	}
	for _, id := range ids {
		end := must[jobline.JobEnd](t)(client.WaitOne(ctx, id))
		if end.State != jobline.StateDead || end.Error == nil || end.Error.Type != "KeyErased" || strings.Contains(end.Error.Message, "7,") {
			t.Errorf("it ended as %+v", end)
		}
	}
}

func TestRepeatedPushesOfSealedJobsAreTheSame(t *testing.T) {
	ctx, queue := newContext(t), newQueue(t)
	client := newClient(t, &jobline.ClientOptions{Codec: newCodec(t, newRing())})
	same := func(what string, push func() (uint64, error)) {
		t.Helper()
		first, err := push()
		again, err2 := push()
		if err != nil || err2 != nil || first != again {
			t.Errorf("%s: %d and %d: %v, %v", what, first, again, err, err2)
		}
	}
	same("a job key", func() (uint64, error) {
		pushed, err := client.Push(ctx, queue, secret, &jobline.PushOptions{JobKey: "k"})
		return pushed.ID, err
	})
	same("a request id", func() (uint64, error) {
		pushed, err := client.PushMany(ctx, queue, []jobline.NewJob{{Payload: 1}, {Payload: 2, Options: jobline.PushOptions{Group: "a"}}},
			&jobline.PushManyOptions{RequestID: queue})
		if err != nil {
			return 0, err
		}
		return pushed[1].ID, nil
	})
	same("a request id of payloads", func() (uint64, error) {
		lot, err := client.PushPayloads(ctx, queue, [][]byte{{1}, {2}}, &jobline.PushManyOptions{RequestID: queue + "-2"})
		return lot.FirstID, err
	})
	many := make([][]byte, 10_000)
	if lot, err := client.PushPayloads(ctx, queue, many, nil); err != nil || lot.Count != len(many) {
		t.Errorf("got %+v, %v", lot, err)
	}
	if _, err := client.Push(ctx, queue, "other", &jobline.PushOptions{JobKey: "k"}); !errors.Is(err, jobline.ErrIdempotencyMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestAllWaysOfPushingAreSealed(t *testing.T) {
	ctx, queue, codec := newContext(t), newQueue(t), newCodec(t, newRing())
	client := newClient(t, &jobline.ClientOptions{Codec: codec})
	worker := newWorker(t, jobline.WorkerOptions{Codec: codec})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[string]) (string, error) { return job.Payload, nil })
	jobline.Handle(worker, queue, "sum", func(ctx context.Context, job *jobline.Job[string]) (string, error) {
		children, err := job.Children(ctx)
		if err != nil || len(children) > 0 {
			return string(children[0].Result) + string(children[1].Result), err
		}
		return "", jobline.WaitFor(jobline.FlowJob{Queue: queue, Payload: "x"}, jobline.FlowJob{Queue: queue, Payload: "y"})
	})
	jobline.Handle(worker, queue, "phases", func(_ context.Context, job *jobline.Job[string]) (string, error) {
		if job.Attempt == 1 {
			return "", errors.Join(job.FinishPhase("first", secret), jobline.Retry(0))
		}
		return jobline.RunPhase(job, "first", func() (string, error) { return "", errors.New("run twice") })
	})
	start(t, worker)
	var ids []uint64
	ids = append(ids, must[[]uint64](t)(client.PushFlow(ctx, jobline.FlowJob{Queue: queue, Payload: "root", Children: []jobline.FlowJob{{Queue: queue, Payload: "leaf"}}}))...)
	must[*joblinev1.Schedule](t)(client.UpsertSchedule(ctx, queue, jobline.Schedule{Queue: queue, Cron: "@yearly", Payload: "scheduled"}))
	ids = append(ids, must[uint64](t)(client.TriggerSchedule(ctx, queue, "")))
	want := []string{`"root"`, `"leaf"`, `"scheduled"`}
	for i, id := range ids {
		end := must[jobline.JobEnd](t)(client.WaitOne(ctx, id))
		if string(end.Result) != want[i] || storedJob(t, client, id).GetOptions().GetContentType() != jobline.SealedType {
			t.Errorf("%d ended as %+v", i, end)
		}
	}
	for name, want := range map[string]string{"sum": `"x""y"`, "phases": secret} {
		got, err := jobline.PushAndWait[string](ctx, client, queue, "", &jobline.PushOptions{Name: name, Phases: map[string][]string{"phases": {"first"}}[name]})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if got, err := jobline.Call[string](ctx, client.Entity(queue, "a", nil), "", "entity", nil); err != nil || got != "entity" {
		t.Errorf("got %q, %v", got, err)
	}
	batch := must[*joblinev1.Batch](t)(client.CreateBatch(ctx, &jobline.BatchOptions{OnComplete: &jobline.Callback{Queue: queue, Payload: "over"}}))
	must[jobline.Pushed](t)(client.Push(ctx, queue, "member", &jobline.PushOptions{Batch: batch.GetId()}))
	must[*joblinev1.Batch](t)(client.CloseBatch(ctx, batch.GetId()))
	eventually(t, "the callback has run", func() bool {
		found := must[*joblinev1.ListJobsResponse](t)(joblinev1.NewJobAdminServiceClient(client.Conn()).ListJobs(ctx, &joblinev1.ListJobsRequest{
			Filter: &joblinev1.JobFilter{Queue: queue, States: []jobline.JobState{jobline.StateCompleted}}, IncludePayloads: true,
		}))
		for _, job := range found.GetJobs() {
			if plain, _, err := codec.Open(job.GetResult()); err == nil && string(plain) == `"over"` {
				return true
			}
		}
		return false
	})
}

func TestWithoutCodecSealedJobsFailAndUnsealedOnesPassWithOne(t *testing.T) {
	ctx, queue, codec := newContext(t), newQueue(t), newCodec(t, newRing())
	plain, sealing := newClient(t, nil), newClient(t, &jobline.ClientOptions{Codec: codec})
	worker := newWorker(t, jobline.WorkerOptions{})
	jobline.Handle(worker, queue, "", func(_ context.Context, job *jobline.Job[[]byte]) ([]byte, error) { return job.Payload, nil })
	start(t, worker)
	end := must[jobline.JobEnd](t)(plain.WaitOne(ctx, must[jobline.Pushed](t)(sealing.Push(ctx, queue, secret, &jobline.PushOptions{MaxAttempts: 1})).ID))
	if !errors.Is(end.Err(), jobline.ErrJobDead) || !strings.Contains(end.Error.Message, "no codec") {
		t.Errorf("it ended as %+v", end)
	}
	reading := newWorker(t, jobline.WorkerOptions{Codec: codec})
	jobline.Handle(reading, queue, "new", func(_ context.Context, job *jobline.Job[string]) (string, error) { return job.Payload, nil })
	start(t, reading)
	if got, err := jobline.PushAndWait[string](ctx, sealing, queue, "x", &jobline.PushOptions{Name: "new"}); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	pushed := must[jobline.Pushed](t)(plain.Push(ctx, queue, "unframed", &jobline.PushOptions{Name: "new"}))
	if _, err := plain.WaitOne(ctx, pushed.ID); !errors.Is(err, jobline.ErrCodec) { // its result is sealed
		t.Errorf("got %v", err)
	}
	if got, err := jobline.ResultOf[string](must[jobline.JobEnd](t)(sealing.WaitOne(ctx, pushed.ID))); err != nil || got != "unframed" {
		t.Errorf("got %q, %v", got, err)
	}
}
