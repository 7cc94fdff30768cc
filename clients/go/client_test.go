package jobline_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

type mail struct {
	To string `json:"to"`
}

func TestPushStoresWhatItSays(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, mail{"a@b.c"}, &jobline.PushOptions{
		Name: "welcome", Priority: 7, MaxAttempts: jobline.None, MaxStalls: jobline.None, TTL: time.Hour,
		Lease: time.Minute, Headers: map[string]string{"a": "1"}, Tags: []string{"x"},
		Backoff: &jobline.Backoff{Fixed: true, Base: time.Second, Jitter: jobline.None},
		JobKey:  "k", UniqueKey: "u", Group: "", Delay: time.Hour,
	}))
	if pushed.Outcome != jobline.PushCreated || pushed.AckLevel != jobline.AckFsynced || pushed.ID == 0 {
		t.Fatalf("got %+v", pushed)
	}
	admin := joblinev1.NewJobAdminServiceClient(client.Conn())
	got := must[*joblinev1.GetJobResponse](t)(admin.GetJob(ctx, &joblinev1.GetJobRequest{Job: &joblinev1.GetJobRequest_Id{Id: pushed.ID}}))
	job := got.GetJob()
	o := job.GetOptions()
	if string(job.GetPayload()) != `{"to":"a@b.c"}` || o.GetContentType() != "application/json" ||
		o.GetName() != "welcome" || o.GetPriority() != 7 || o.MaxAttempts == nil || o.GetMaxAttempts() != 0 ||
		o.MaxStalls == nil || o.GetMaxStalls() != 0 || o.GetLease().AsDuration() != time.Minute ||
		o.GetHeaders()["a"] != "1" || o.GetUniqueKey() != "u" || job.GetJobKey() != "k" ||
		o.GetBackoff().Jitter == nil || o.GetTtl().AsDuration() != time.Hour ||
		job.GetState() != joblinev1.JobState_JOB_STATE_SCHEDULED {
		t.Fatalf("stored %v", job)
	}
}

func TestPushWithKnownKeyReturnsTheFirstJob(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	push := func(payload string) (jobline.Pushed, error) {
		return client.Push(ctx, queue, []byte(payload), &jobline.PushOptions{JobKey: "k"})
	}
	first := must[jobline.Pushed](t)(push("1"))
	again := must[jobline.Pushed](t)(push("1"))
	if again.ID != first.ID || again.Outcome != jobline.PushDuplicate {
		t.Fatalf("got %+v after %+v", again, first)
	}
	_, err := push("other")
	if !errors.Is(err, jobline.ErrIdempotencyMismatch) || !errors.Is(err, jobline.ErrAlreadyExists) ||
		!errors.Is(err, jobline.ErrRefused) || jobline.Retryable(err) {
		t.Fatalf("got %v", err)
	}
}

func TestRefusalNamesFieldAndReason(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	_, err := client.Push(ctx, queue, nil, &jobline.PushOptions{Lease: time.Millisecond})
	var e *jobline.Error
	if !errors.As(err, &e) || e.Field != "options.lease" || e.Reason != "INVALID_FIELD" || !e.Definite() {
		t.Fatalf("got %#v", err)
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("status.Code is %v", status.Code(err))
	}
	_, err = client.PushMany(ctx, queue, []jobline.NewJob{{}, {Options: jobline.PushOptions{JobKey: strings.Repeat("x", 300)}}}, nil)
	if !errors.As(err, &e) || e.Field != "jobs[1].job_key" {
		t.Fatalf("got %#v", err)
	}
}

func TestOnlyThePushAtFaultIsRefused(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	var all sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		all.Go(func() {
			options := &jobline.PushOptions{}
			if i == 17 {
				options.JobKey = strings.Repeat("x", 300)
			}
			_, errs[i] = client.Push(ctx, queue, []byte("x"), options)
		})
	}
	all.Wait()
	for i, err := range errs {
		if (err != nil) != (i == 17) {
			t.Errorf("push %d: %v", i, err)
		}
	}
}

func TestPushesOfOneKeyKeepTheirOrderAndShareCalls(t *testing.T) {
	calls := 0
	client := newClient(t, &jobline.ClientOptions{})
	ctx, queue := newContext(t), newQueue(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[uint64]bool{}
	for range 64 {
		all.Go(func() {
			last := uint64(0)
			for range 20 {
				pushed, err := client.Push(ctx, queue, []byte("x"), nil)
				if err != nil || pushed.ID <= last {
					t.Errorf("id %d after %d: %v", pushed.ID, last, err)
				}
				last = pushed.ID
				mu.Lock()
				ids[last] = true
				calls++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(ids) != calls {
		t.Fatalf("%d ids of %d pushes", len(ids), calls)
	}
}

func TestFullBufferRefusesTheNewest(t *testing.T) {
	client := newClient(t, &jobline.ClientOptions{BufferJobs: 4})
	ctx, queue := newContext(t), newQueue(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	stored, refused := 0, 0
	for range 200 {
		all.Go(func() {
			_, err := client.Push(ctx, queue, nil, nil)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				stored++
			case errors.Is(err, jobline.ErrBufferFull) && jobline.Retryable(err):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if stored < 4 || stored+refused != 200 || refused == 0 {
		t.Fatalf("%d stored, %d refused", stored, refused)
	}
}

func TestPushManyKeepsOrderAndOwnOptions(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	first := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, []jobline.NewJob{
		{Payload: 1}, {Payload: []byte("2"), Options: jobline.PushOptions{Name: "b", DependsOnIndexes: []uint32{0}}},
	}, nil))
	if len(first) != 2 || first[1].ID != first[0].ID+1 {
		t.Fatalf("got %+v", first)
	}
	keyed := []jobline.NewJob{{Payload: 1, Options: jobline.PushOptions{JobKey: "a"}}, {Payload: 2}}
	must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, keyed, nil))
	keyed[0].Payload = 3
	mixed := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, keyed, &jobline.PushManyOptions{NotAtomic: true}))
	if !errors.Is(mixed[0].Err, jobline.ErrIdempotencyMismatch) || mixed[1].Err != nil || mixed[1].ID == 0 {
		t.Fatalf("got %+v", mixed)
	}
	lot := must[jobline.Lot](t)(client.PushPayloads(ctx, queue, [][]byte{[]byte("1"), []byte("2")}, nil))
	if lot.Count != 2 || lot.FirstID != mixed[1].ID+1 {
		t.Fatalf("got %+v", lot)
	}
}

// TestWhatIsRefusedAloneSaysWhichKeyItIs: the queue's own mode counts too, which the client does not know.
func TestWhatIsRefusedAloneSaysWhichKeyItIs(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	job := func(payload any, jobKey, uniqueKey string, mode jobline.UniqueMode) jobline.NewJob {
		return jobline.NewJob{Payload: payload, Options: jobline.PushOptions{JobKey: jobKey, UniqueKey: uniqueKey, UniqueMode: mode}}
	}
	first := must[jobline.Pushed](t)(client.Push(ctx, queue, 1, &jobline.PushOptions{JobKey: "j", UniqueKey: "u"}))
	waits := &jobline.PushOptions{DependsOn: []uint64{first.ID}}
	must[jobline.Pushed](t)(client.Push(ctx, queue, 1, waits))
	jobs := []jobline.NewJob{
		job(2, "j", "free", jobline.UniqueReject),   // its job key is known with another payload
		job(2, "new", "u", jobline.UniqueReject),    // its unique key is held
		job(2, "other", "u", jobline.UniqueReplace), // another job waits for the one that it would replace
		job(2, "", "u", jobline.UniqueReplace),
		job(2, "", "u", jobline.UniqueReject),
		job(2, "j", "", 0),
	}
	pushed := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, jobs, &jobline.PushManyOptions{NotAtomic: true}))
	want := []string{"IDEMPOTENCY_MISMATCH", "UNIQUE_KEY_HELD", "JOB_AWAITED", "JOB_AWAITED", "UNIQUE_KEY_HELD", "IDEMPOTENCY_MISMATCH"}
	for i, one := range pushed {
		var e *jobline.Error
		if !errors.As(one.Err, &e) || e.Reason != want[i] || !e.Definite() || one.Outcome != jobline.PushRefused || one.AckLevel == 0 {
			t.Errorf("%d: got %+v, not %s", i, one, want[i])
		}
	}
}

func TestSameRequestIDReturnsTheSameJobs(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	options := &jobline.PushManyOptions{RequestID: "r-1"}
	jobs := []jobline.NewJob{{Payload: 1}, {Payload: 2}}
	first := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, jobs, options))
	again := must[[]jobline.Pushed](t)(client.PushMany(ctx, queue, jobs, options))
	if first[0].ID != again[0].ID || first[1].ID != again[1].ID {
		t.Fatalf("%+v, then %+v", first, again)
	}
}

func TestUnreachableServerIsDefinite(t *testing.T) {
	t.Parallel()
	client := clientOf(t, "127.0.0.1:1", nil)
	began := time.Now()
	_, err := client.Push(newContext(t), "q", nil, nil)
	var e *jobline.Error
	if !errors.Is(err, jobline.ErrNotConnected) || !errors.As(err, &e) || !e.Definite() || !e.Retryable() {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Fatalf("it took %v", took)
	}
	for _, bad := range []string{"localhost", "http://x:1", ":7070", "host:0", "::1:7070"} {
		if _, err := jobline.New(bad, nil); !errors.Is(err, jobline.ErrInvalidArgument) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWaitTimeoutCarriesTheID(t *testing.T) {
	client, queue := newClient(t, nil), newQueue(t)
	ctx, cancel := context.WithTimeout(newContext(t), 300*time.Millisecond)
	defer cancel()
	_, err := jobline.PushAndWait[int](ctx, client, queue, 1, nil)
	var e *jobline.Error
	if !errors.Is(err, jobline.ErrWaitTimeout) || !errors.As(err, &e) || e.ID == 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

func TestClosedClientRefuses(t *testing.T) {
	client, queue := newClient(t, nil), newQueue(t)
	must[jobline.Pushed](t)(client.Push(newContext(t), queue, nil, nil))
	_ = client.Close()
	_ = client.Close()
	if _, err := client.Push(newContext(t), queue, nil, nil); !errors.Is(err, jobline.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

// A call that waits without an end of its own ends with the client, as do calls that come later.
func TestClosedClientEndsWaits(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	pushed := must[jobline.Pushed](t)(client.Push(ctx, queue, nil, nil))
	ended := make(chan error, 1)
	go func() {
		_, err := client.WaitOne(ctx, pushed.ID)
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // or it is a wait that comes later
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { _ = client.Close() })
	}
	all.Wait()
	_, many := client.PushMany(ctx, queue, []jobline.NewJob{{}}, nil)
	_, later := client.WaitOne(ctx, pushed.ID)
	for _, err := range []error{<-ended, many, later} {
		if !errors.Is(err, jobline.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCancelledPushIsWithdrawn(t *testing.T) {
	client, queue := newClient(t, nil), newQueue(t)
	ctx, cancel := context.WithCancel(newContext(t))
	cancel()
	_, err := client.Push(ctx, queue, nil, nil)
	var e *jobline.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || !e.Definite() {
		t.Fatalf("got %v", err)
	}
}
