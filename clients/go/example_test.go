package jobline_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// The examples run against the server in JOBLINE_SERVER, which the tests start.

type Email struct {
	To string `json:"to"`
}

type Sent struct {
	ID string `json:"id"`
}

// work runs a worker for an example, and returns how to stop it.
func work(worker *jobline.Worker) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := worker.Run(context.Background()); err != nil {
			log.Fatal(err)
		}
	}()
	return func() { worker.Stop(); <-done }
}

func Example() {
	ctx := context.Background()
	worker, err := jobline.NewWorker("", &jobline.WorkerOptions{Concurrency: 8, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	jobline.Handle(worker, "emails", "welcome", func(_ context.Context, job *jobline.Job[Email]) (Sent, error) {
		if !strings.Contains(job.Payload.To, "@") {
			return Sent{}, jobline.Dead("no address")
		}
		return Sent{ID: "m-1"}, nil
	})
	defer work(worker)()

	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	sent, err := jobline.PushAndWait[Sent](ctx, client, "emails", Email{"a@b.c"}, &jobline.PushOptions{Name: "welcome"})
	fmt.Println(sent.ID, err)
	_, err = jobline.PushAndWait[Sent](ctx, client, "emails", Email{"nobody"}, &jobline.PushOptions{Name: "welcome"})
	fmt.Println(errors.Is(err, jobline.ErrJobDead))
	// Output:
	// m-1 <nil>
	// true
}

func ExampleClient_Push() {
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	options := &jobline.PushOptions{JobKey: "welcome-1", Delay: time.Hour, MaxAttempts: 5}
	for range 2 {
		pushed, err := client.Push(context.Background(), "letters", Email{"a@b.c"}, options)
		fmt.Println(pushed.Outcome, err)
	}
	// Output:
	// PUSH_OUTCOME_CREATED <nil>
	// PUSH_OUTCOME_DUPLICATE <nil>
}

func ExampleClient_PushMany() {
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	pushed, err := client.PushMany(context.Background(), "numbers", []jobline.NewJob{
		{Payload: 1}, {Payload: 2, Options: jobline.PushOptions{Priority: 9}},
	}, nil)
	fmt.Println(len(pushed), err)
	// Output: 2 <nil>
}

func ExampleError() {
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	_, err = client.Push(context.Background(), "emails", nil, &jobline.PushOptions{Lease: time.Millisecond})
	var refused *jobline.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Reason, refused.Field, refused.Retryable(), refused.Definite())
	}
	// Output: INVALID_FIELD options.lease false true
}

func ExampleHandleBatch() {
	worker, err := jobline.NewWorker("", &jobline.WorkerOptions{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	jobline.HandleBatch(worker, "rows", "", nil, func(_ context.Context, batch *jobline.Batch[int, int]) error {
		for _, job := range batch.Jobs {
			batch.Done(job, job.Payload*2)
		}
		return nil
	})
	defer work(worker)()
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(jobline.PushAndWait[int](context.Background(), client, "rows", 21, nil))
	// Output: 42 <nil>
}

func ExampleHandleEntity() {
	type Account struct{ Total int }
	worker, err := jobline.NewWorker("", &jobline.WorkerOptions{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	accounts := jobline.NewEntities(worker, "account", &jobline.EntityOptions[Account]{
		OnActivate: func(_ context.Context, key string) (*Account, error) { return &Account{Total: 100}, nil }, // loads it
	})
	jobline.HandleEntity(accounts, "deposit", func(_ context.Context, account *Account, job *jobline.Job[int]) (int, error) {
		account.Total += job.Payload
		return account.Total, nil // once it is saved
	})
	defer work(worker)()
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	anna := client.Entity("account", "a-1", nil)
	for range 2 {
		fmt.Println(jobline.Call[int](context.Background(), anna, "deposit", 20, nil))
	}
	// Output:
	// 120 <nil>
	// 140 <nil>
}

func ExampleWaitFor() {
	worker, err := jobline.NewWorker("", &jobline.WorkerOptions{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	jobline.Handle(worker, "parts", "", func(_ context.Context, job *jobline.Job[int]) (int, error) { return job.Payload * 2, nil })
	jobline.Handle(worker, "wholes", "", func(ctx context.Context, job *jobline.Job[int]) (int, error) {
		children, err := job.Children(ctx)
		if err == nil && len(children) == 0 {
			return 0, jobline.WaitFor(jobline.FlowJob{Queue: "parts", Payload: 1}, jobline.FlowJob{Queue: "parts", Payload: 20})
		}
		total := 0
		for _, child := range children {
			n := 0
			_, err = fmt.Sscan(string(child.Result), &n)
			total += n
		}
		return total, err
	})
	defer work(worker)()
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(jobline.PushAndWait[int](context.Background(), client, "wholes", 0, nil))
	// Output: 42 <nil>
}

func ExampleClient_Conn() {
	client, err := jobline.New("", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	queues := joblinev1.NewQueueServiceClient(client.Conn())
	_, err = queues.GetQueue(context.Background(), &joblinev1.GetQueueRequest{Queue: "no-such-queue"})
	fmt.Println(errors.Is(err, jobline.ErrQueueNotFound))
	// Output: true
}
