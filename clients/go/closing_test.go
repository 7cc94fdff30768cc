package jobline_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

func TestCloseWaitsForCallsOfManyPushes(t *testing.T) {
	asked, free := make(chan struct{}), make(chan struct{})
	_, client := startFake(t, func(int, *joblinev1.PushRequest) error {
		close(asked)
		<-free
		return nil
	}, nil)
	closed, pushed := make(chan struct{}), make(chan error)
	go func() {
		_, err := client.PushMany(newContext(t), "q", []jobline.NewJob{{}}, nil)
		pushed <- err
	}()
	<-asked
	go func() {
		_ = client.Close()
		close(closed)
	}()
	eventually(t, "new pushes are refused", func() bool {
		late, cancel := context.WithCancel(newContext(t))
		cancel() // so that nothing is sent where it is not closed yet
		_, err := client.PushMany(late, "q", []jobline.NewJob{{}}, nil)
		return errors.Is(err, jobline.ErrClosed)
	})
	select {
	case <-closed:
		t.Error("it is closed before the answer")
	default:
	}
	close(free)
	if err := <-pushed; err != nil {
		t.Errorf("got %v", err)
	}
	<-closed
}

// TestCallThatIsUnderWayWhenItsClientIsClosedIsNotRefused: the server may have stored what it was sent.
func TestCallThatIsUnderWayWhenItsClientIsClosedIsNotRefused(t *testing.T) {
	asked, free := make(chan struct{}, 1), make(chan struct{})
	defer close(free)
	_, client := startFake(t, func(int, *joblinev1.PushRequest) error {
		asked <- struct{}{}
		<-free
		return nil
	}, &jobline.ClientOptions{Timeout: 300 * time.Millisecond})
	pushed := make(chan error, 2)
	go func() {
		_, err := client.PushMany(newContext(t), "q", []jobline.NewJob{{}}, nil)
		pushed <- err
	}()
	<-asked
	go func() {
		_, err := joblinev1.NewJobServiceClient(client.Conn()).Push(newContext(t), &joblinev1.PushRequest{Queue: "q"})
		pushed <- err
	}()
	<-asked
	_ = client.Close() // it waits 300 ms
	for range 2 {
		err := <-pushed
		var e *jobline.Error
		if !errors.As(err, &e) || e.Definite() || errors.Is(err, jobline.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	_, err := joblinev1.NewJobServiceClient(client.Conn()).Push(newContext(t), &joblinev1.PushRequest{Queue: "q"})
	if !errors.Is(err, jobline.ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
}

// TestAuthorizationOfAContextIsShownInPushesAndWaits, alone: one of a user is not that of the program.
func TestAuthorizationOfAContextIsShownInPushesAndWaits(t *testing.T) {
	f, client := startFake(t, stored, &jobline.ClientOptions{Connection: jobline.Connection{Token: "program"}})
	var mu sync.Mutex
	var shown []string
	f.asked = func(ctx context.Context) error {
		given, _ := metadata.FromIncomingContext(ctx)
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, given.Get("authorization")...)
		return nil
	}
	f.ends = []*joblinev1.WaitResponse{{Id: 7, State: jobline.StateCompleted}}
	user := metadata.AppendToOutgoingContext(newContext(t), "authorization", "Bearer user")
	for _, ctx := range []context.Context{user, newContext(t)} {
		if pushed, err := client.Push(ctx, "q", nil, nil); err != nil || pushed.ID == 0 {
			t.Fatal(pushed, err)
		}
		if end, err := client.WaitOne(ctx, 7); err != nil || end.ID != 7 {
			t.Fatal(end, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"Bearer user", "Bearer user", "Bearer program", "Bearer program"}; !slices.Equal(shown, want) {
		t.Errorf("got %v", shown)
	}
}
