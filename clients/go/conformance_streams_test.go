package jobline_test

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobline "github.com/jobline/jobline/clients/go"
)

// Calls of vectors that stream.

func streamStep(ctx context.Context, client *jobline.Client, method protoreflect.MethodDescriptor, path string, step object, known variables, held heldStreams) (any, error) {
	frames, isList := known.filled(step["with"]).([]any)
	if !isList {
		frames = []any{known.filled(step["with"])}
	}
	name, isKept := step["hold"].(string)
	if isKept {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	one := &heldStream{kind: method.Output(), cancel: cancel}
	if isKept {
		held.keep(name, one)
	} else {
		defer cancel()
	}
	shape := &grpc.StreamDesc{ServerStreams: true, ClientStreams: method.IsStreamingClient()}
	stream, err := client.Conn().NewStream(ctx, shape, path)
	if err != nil {
		return nil, err
	}
	one.stream = stream
	for _, frame := range frames {
		request, err := messageOf(method.Input(), frame)
		if err != nil {
			return nil, err
		}
		if stream.SendMsg(request) != nil {
			break // RecvMsg says why
		}
	}
	if !method.IsStreamingClient() || step["read"] != "some" {
		_ = stream.CloseSend() // a worker that half-closes says goodbye
	}
	return one.rest(step, known)
}

// heldStreams are the streams that a vector keeps open, by name; they are cancelled at its end.
type heldStreams map[string]*heldStream

type heldStream struct {
	stream grpc.ClientStream
	kind   protoreflect.MessageDescriptor
	cancel context.CancelFunc
}

func (h heldStreams) keep(name string, one *heldStream) {
	if before := h[name]; before != nil {
		before.cancel()
	}
	h[name] = one
}

func (h heldStreams) cancel() {
	for _, one := range h {
		one.cancel()
	}
}

// rest is what comes on a stream that was kept, from now on.
func (s *heldStream) rest(step object, known variables) (any, error) {
	return readSome(s.stream, s.kind, step, known)
}

// readSome reads all messages of a stream, or with `read: some` until they are as expected.
func readSome(stream grpc.ClientStream, kind protoreflect.MessageDescriptor, step object, known variables) (any, error) {
	messages := []any{}
	for {
		reply, _ := messageOf(kind, nil)
		if err := stream.RecvMsg(reply); errors.Is(err, io.EOF) {
			return object{"messages": messages}, nil
		} else if err != nil {
			return nil, err
		}
		one, err := jsonOf(reply)
		if err != nil {
			return nil, err
		}
		messages = append(messages, one)
		got := object{"messages": messages}
		if step["read"] == "some" && known.copy().match(step["expect"], got, "") == nil {
			return got, nil
		}
	}
}
