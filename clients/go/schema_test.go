package jobline_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/internal/testserver"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

type base struct {
	ID     uint   `json:"id"`
	Shadow string `json:"shadow"`
}

type tree struct {
	Value int     `json:"value"`
	Next  []*tree `json:"next,omitempty"`
}

type page[T any] struct {
	Items []T `json:"items"`
}

type everything struct {
	base
	Named    base              `json:"named"`
	Shadow   bool              `json:"shadow"`
	Text     string            `json:"text,omitempty"`
	Quoted   int               `json:"quoted,string"`
	At       time.Time         `json:"at"`
	Data     []byte            `json:"data"`
	Raw      json.RawMessage   `json:"raw"`
	Any      any               `json:"any"`
	Address  netip.Addr        `json:"address"`
	Big      *big.Int          `json:"big"`
	Sizes    [2]float64        `json:"sizes"`
	Counts   map[string]int    `json:"counts"`
	Times    map[int]time.Time `json:"times"`
	Left     *int              `json:"left"`
	Tree     tree              `json:"tree"`
	Skipped  chan int          `json:"-"`
	Plain    bool
	internal int
}

func TestSchemasSayWhatJSONHas(t *testing.T) {
	for want, got := range map[string]string{
		"":                                       jobline.SchemaOf[[]byte]() + jobline.SchemaOf[any]() + jobline.SchemaOf[jobline.NoResult]() + jobline.SchemaOf[json.RawMessage](),
		`{"type":"string"}`:                      jobline.SchemaOf[string](),
		`{"minimum":0,"type":"integer"}`:         jobline.SchemaOf[uint8](),
		`{"format":"date-time","type":"string"}`: jobline.SchemaOf[time.Time](),
		`{"anyOf":[{"items":{"type":"integer"},"type":"array"},{"type":"null"}]}`:                  jobline.SchemaOf[[]int](),
		`{"properties":{"to":{"type":"string"}},"required":["to"],"title":"mail","type":"object"}`: jobline.SchemaOf[mail](),
		`{"$defs":{"tree":{"properties":{"next":{"anyOf":[{"items":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"type":"array"},{"type":"null"}]},"value":{"type":"integer"}},"required":["value"],"title":"tree","type":"object"}},"$ref":"#/$defs/tree"}`:            jobline.SchemaOf[tree](),
		`{"$defs":{"mail":{"properties":{"to":{"type":"string"}},"required":["to"],"title":"mail","type":"object"}},"properties":{"items":{"anyOf":[{"items":{"$ref":"#/$defs/mail"},"type":"array"},{"type":"null"}]}},"required":["items"],"title":"page","type":"object"}`: jobline.SchemaOf[page[mail]](),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	schema := jobline.SchemaOf[everything]()
	for _, part := range []string{
		`"id":{"minimum":0,"type":"integer"}`, `"shadow":{"type":"boolean"}`, `"named":{"$ref":"#/$defs/base"}`, `"quoted":{"type":"string"}`,
		`"address":{"type":"string"}`, `"any":{}`, `"raw":{}`, `"big":{}`, `"Plain":{"type":"boolean"}`,
		`"sizes":{"items":{"type":"number"},"type":"array"}`, `"left":{"anyOf":[{"type":"integer"},{"type":"null"}]}`,
		`"times":{"anyOf":[{"additionalProperties":{"format":"date-time","type":"string"},"type":"object"},{"type":"null"}]}`,
		`"data":{"anyOf":[{"contentEncoding":"base64","type":"string"},{"type":"null"}]}`,
	} {
		if !strings.Contains(schema, part) {
			t.Errorf("no %s in %s", part, schema)
		}
	}
	for _, part := range []string{"internal", "Skipped", `"text"]`, `"text",`} {
		if required := schema[strings.LastIndex(schema, `"required"`):]; strings.Contains(required, part) {
			t.Errorf("%s in %s", part, required)
		}
	}
	_ = everything{internal: 1}.internal
}

// TestWorkersAnnounceSchemas also has the command make wrappers of them.
func TestWorkersAnnounceSchemas(t *testing.T) {
	client, ctx, queue := newClient(t, nil), newContext(t), newQueue(t)
	worker := newWorker(t, jobline.WorkerOptions{Version: "1.2"})
	jobline.Handle(worker, queue, "send", func(_ context.Context, job *jobline.Job[mail]) (tree, error) { return tree{Value: 1}, nil })
	jobline.HandleBatch(worker, queue, "all", nil, func(context.Context, *jobline.Batch[everything, jobline.NoResult]) error { return nil })
	start(t, worker)
	response := must[*joblinev1.ListHandlersResponse](t)(joblinev1.NewAdminServiceClient(client.Conn()).ListHandlers(ctx, &joblinev1.ListHandlersRequest{}))
	found := 0
	for _, handler := range response.GetHandlers() {
		if handler.GetQueue() != queue {
			continue
		}
		found++
		variant := handler.GetVariants()[0]
		if variant.GetPayloadSchema() == "" || (variant.GetResultSchema() != "") != (handler.GetName() == "send") {
			t.Errorf("announced %v", handler)
		}
	}
	if found != 2 {
		t.Errorf("%d handlers", found)
	}
	must[*joblinev1.UpdateQueueResponse](t)(joblinev1.NewQueueServiceClient(client.Conn()).UpdateQueue(ctx, &joblinev1.UpdateQueueRequest{
		Queue: queue, Settings: &joblinev1.QueueSettings{CheckPayloads: true}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"check_payloads"}},
	}))
	if _, err := client.Push(ctx, queue, map[string]int{"to": 7}, &jobline.PushOptions{Name: "send"}); !errors.Is(err, jobline.ErrPayloadMisfit) {
		t.Errorf("got %v", err)
	}
	sealing := newClient(t, &jobline.ClientOptions{Codec: newCodec(t, newRing())})
	if _, err := sealing.Push(ctx, queue, mail{"a@b.c"}, &jobline.PushOptions{Name: "send"}); !errors.Is(err, jobline.ErrPayloadMisfit) {
		t.Errorf("a sealed payload: got %v", err)
	}
	if got, err := jobline.PushAndWait[tree](ctx, client, queue, mail{"a@b.c"}, &jobline.PushOptions{Name: "send"}); err != nil || got.Value != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	command := must[string](t)(testserver.Command())
	said, err := exec.CommandContext(ctx, command, "generate", "--lang", "go", "-s", shared.Address).CombinedOutput()
	if err != nil || !strings.Contains(string(said), `json:"to"`) || !strings.Contains(string(said), `json:"next,omitempty"`) {
		t.Errorf("%v: %s", err, said)
	}
}
