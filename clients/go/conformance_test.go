package jobline_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	jobline "github.com/jobline/jobline/clients/go"
)

const callSeconds = 30

type vector struct {
	Name, Server string
	Worker       *struct {
		Version  string
		Handlers []vectorHandler
	}
	Steps []json.RawMessage
}

// TestConformance runs the vectors that every client must pass: `make conformance` starts their servers.
func TestConformance(t *testing.T) {
	path := os.Getenv("CONFORMANCE_VECTORS")
	if path == "" {
		t.Skip("`make conformance` runs it")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Vectors  []vector `json:"vectors"`
		MustFail []vector `json:"must_fail"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if err := v.run(t); err != nil {
				t.Error(err)
			}
		})
	}
	for _, v := range all.MustFail {
		t.Run("must fail: "+v.Name, func(t *testing.T) {
			t.Parallel()
			if v.run(t) == nil {
				t.Error("the runner noticed nothing")
			}
		})
	}
}

func (v *vector) run(t *testing.T) error {
	address, small, _ := strings.Cut(os.Getenv("CONFORMANCE_SERVERS"), ",")
	if v.Server == "small" {
		address = small
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	stamp := func(after time.Duration) string { return time.Now().UTC().Add(after).Format("2006-01-02T15:04:05Z") }
	known := variables{
		"queue": "conformance-" + hex.EncodeToString(random), "random16": hex.EncodeToString(random[:8]),
		"past": stamp(-time.Hour), "soon": stamp(time.Hour),
	}
	client := clientOf(t, address, nil)
	stop := v.work(t, address, known["queue"])
	defer stop()
	held := heldStreams{}
	defer held.cancel()
	for i, raw := range v.Steps {
		step, err := parsed(raw)
		if err == nil {
			err = runStep(client, step.(object), known, held)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// work runs the worker of the vector, if it has one; the result stops it.
func (v *vector) work(t *testing.T, address, queue string) func() {
	if v.Worker == nil {
		return func() {}
	}
	worker, err := jobline.NewWorker(address, &jobline.WorkerOptions{
		Version: v.Worker.Version, SoftStop: 5 * time.Second, HardStop: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	addVectorHandlers(worker, queue, v.Worker.Handlers)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(context.Background()) }()
	return func() {
		worker.Stop()
		if err := <-ended; err != nil {
			t.Error("the worker ended with", err)
		}
	}
}

// runStep makes a step, again for at most `within` seconds, until what comes back is as expected.
func runStep(client *jobline.Client, step object, known variables, held heldStreams) error {
	if pause, ok := step["pause"].(json.Number); ok {
		number, _ := pause.Float64()
		time.Sleep(seconds(number))
		return nil
	}
	within, _ := json.Number(fmt.Sprint(step["within"])).Float64()
	until := time.Now().Add(seconds(within))
	for {
		tried := known.copy()
		err := tryStep(client, step, tried, held)
		if err == nil {
			known.take(tried)
			return nil
		}
		if !time.Now().Before(until) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func tryStep(client *jobline.Client, step object, known variables, held heldStreams) error {
	ctx, cancel := context.WithTimeout(context.Background(), callSeconds*time.Second)
	defer cancel()
	var got any
	var err error
	if name, isHeld := step["held"].(string); isHeld {
		got, err = held[name].rest(step, known)
	} else if _, ok := step["client"]; ok {
		got, err = clientStep(ctx, client, step, known)
	} else {
		got, err = callStep(ctx, client, step, known, held)
	}
	wanted, refused := step["error"]
	var e *jobline.Error
	switch {
	case err == nil && refused:
		return fmt.Errorf("it was not refused: %v", got)
	case err == nil:
		return known.match(step["expect"], got, "reply")
	case !refused || !errors.As(err, &e):
		return fmt.Errorf("refused: %w", err)
	}
	return known.match(wanted, factsOf(e), "error")
}

func factsOf(e *jobline.Error) object {
	kind := ""
	for name, class := range map[string]error{
		"JobDead": jobline.ErrJobDead, "JobCancelled": jobline.ErrJobCancelled,
		"JobExpired": jobline.ErrJobExpired, "WaitTimeout": jobline.ErrWaitTimeout,
	} {
		if errors.Is(e, class) {
			kind = name
		}
	}
	return object{
		"code": code.Code(e.Code).String(), "reason": e.Reason, "field": e.Field,
		"definite": e.Definite(), "retryable": e.Retryable(), "kind": kind,
	}
}

// callStep makes a call by its name, with messages that are found by theirs.
func callStep(ctx context.Context, client *jobline.Client, step object, known variables, held heldStreams) (any, error) {
	service, method, _ := strings.Cut(step["call"].(string), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("jobline.v1." + service))
	if err != nil {
		return nil, err
	}
	descriptor := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	path := fmt.Sprintf("/jobline.v1.%s/%s", service, method)
	if descriptor.IsStreamingServer() {
		return streamStep(ctx, client, descriptor, path, step, known, held)
	}
	request, err := messageOf(descriptor.Input(), known.filled(step["with"]))
	if err != nil {
		return nil, err
	}
	reply, _ := messageOf(descriptor.Output(), nil)
	if err := client.Conn().Invoke(ctx, path, request, reply); err != nil {
		return nil, err
	}
	return jsonOf(reply)
}

func messageOf(kind protoreflect.MessageDescriptor, given any) (proto.Message, error) {
	found, err := protoregistry.GlobalTypes.FindMessageByName(kind.FullName())
	if err != nil || given == nil {
		return found.New().Interface(), err
	}
	message := found.New().Interface()
	data, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	return message, protojson.Unmarshal(data, message)
}

func jsonOf(message proto.Message) (any, error) {
	data, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	return parsed(data)
}
