package jobline

import (
	"reflect"
	"time"
)

// PretendDownFor has a worker that has no stream believe that it had none for so long.
func PretendDownFor(w *Worker, span time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Now().Add(-span)
	w.run.session.downSince.Store(&since)
}

// SchemaOf returns the JSON Schema that is announced of a type.
func SchemaOf[T any]() string { return schemaText(reflect.TypeFor[T]()) }

// PushCalls returns how many push calls a client has begun, as long as one producer made them all.
func PushCalls(client *Client) uint64 {
	client.calls.mu.Lock()
	defer client.calls.mu.Unlock()
	return client.calls.current.last
}

// WaitCalls returns how many calls the small waits of a client have open, and for how many jobs.
func WaitCalls(client *Client) (calls, jobs int) {
	s := client.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) + s.retiring, len(s.jobs)
}
