package jobline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	jobline "github.com/jobline/jobline/clients/go"
)

// clientStep calls the hand-written part of the client.
func clientStep(ctx context.Context, client *jobline.Client, step object, known variables) (any, error) {
	given := known.filled(step["with"]).(object)
	text := func(name string) string { value, _ := given[name].(string); return value }
	number := func(name string) float64 {
		value, _ := json.Number(fmt.Sprint(given[name])).Float64()
		return value
	}
	payload, err := json.Marshal(given["payload"])
	if err != nil {
		return nil, err
	}
	options := &jobline.PushOptions{
		Name: text("name"), JobKey: text("job_key"), UniqueKey: text("unique_key"), MaxAttempts: int(number("max_attempts")),
	}
	if step["client"] == "push" {
		pushed, err := client.Push(ctx, text("queue"), json.RawMessage(payload), options)
		return object{
			"id":        fmt.Sprint(pushed.ID),
			"outcome":   strings.TrimPrefix(pushed.Outcome.String(), "PUSH_OUTCOME_"),
			"ack_level": strings.TrimPrefix(pushed.AckLevel.String(), "ACK_LEVEL_"),
		}, err
	}
	ctx, cancel := context.WithTimeout(ctx, seconds(number("timeout")))
	defer cancel()
	result, err := jobline.PushAndWait[json.RawMessage](ctx, client, text("queue"), json.RawMessage(payload), options)
	if err != nil {
		return nil, err
	}
	value, err := parsed(result)
	return object{"result": value}, err
}
