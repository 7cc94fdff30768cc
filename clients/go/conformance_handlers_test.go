package jobline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	jobline "github.com/jobline/jobline/clients/go"
)

// What handlers of vectors do.

type vectorHandler struct {
	Name  string
	Do    [][]map[string]json.RawMessage
	Batch *struct {
		Size int
		Wait float64
	}
	Answers map[string]map[string]json.RawMessage
}

func addVectorHandlers(worker *jobline.Worker, queue string, handlers []vectorHandler) {
	for _, h := range handlers {
		if h.Batch != nil {
			options := &jobline.BatchHandlerOptions{Size: h.Batch.Size, Wait: seconds(h.Batch.Wait)}
			jobline.HandleBatch(worker, queue, h.Name, options, h.answer)
			continue
		}
		script := &vectorScript{turns: h.Do, counts: map[uint64]int{}}
		jobline.Handle(worker, queue, h.Name, script.run)
	}
}

func (h vectorHandler) answer(_ context.Context, batch *jobline.Batch[string, json.RawMessage]) error {
	for _, job := range batch.Jobs {
		for word, value := range h.Answers[job.Payload] {
			switch word {
			case "return":
				batch.Done(job, value)
			case "error":
				batch.Fail(job, errors.New(textOf(value)))
			case "dead":
				batch.Fail(job, jobline.Dead(textOf(value)))
			}
		}
	}
	return nil
}

// vectorScript does the n-th list of actions when a job is handed to it for the n-th time, and the last
// one again after that.
type vectorScript struct {
	turns  [][]map[string]json.RawMessage
	mu     sync.Mutex
	counts map[uint64]int
}

func (s *vectorScript) run(ctx context.Context, job *jobline.Job[json.RawMessage]) (any, error) {
	s.mu.Lock()
	turn := min(s.counts[job.ID], len(s.turns)-1)
	s.counts[job.ID]++
	s.mu.Unlock()
	for _, action := range s.turns[turn] {
		for word, value := range action {
			if result, isResult, err := resultOf(word, value, job); isResult {
				return result, err
			}
			if err := act(ctx, word, value, job.LeasedJob); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

func resultOf(word string, value json.RawMessage, job *jobline.Job[json.RawMessage]) (any, bool, error) {
	switch word {
	case "return":
		return value, true, nil
	case "return_payload":
		return job.Payload, true, nil
	case "return_attempt":
		return job.Attempt, true, nil
	case "return_headers":
		return job.Headers(), true, nil
	case "return_checkpoint":
		var saved json.RawMessage
		_, err := job.Checkpoint(&saved)
		return saved, true, err
	}
	return nil, false, nil
}

func act(ctx context.Context, word string, value json.RawMessage, job *jobline.LeasedJob) error {
	switch word {
	case "error":
		return errors.New(textOf(value))
	case "panic":
		panic(textOf(value))
	case "retry":
		return jobline.Retry(secondsOf(value))
	case "snooze":
		return jobline.Snooze(secondsOf(value))
	case "cancel":
		return jobline.Cancel(textOf(value))
	case "dead":
		return jobline.Dead(textOf(value))
	case "rate_limited":
		return jobline.RateLimited("", time.Now().Add(secondsOf(value)))
	case "progress":
		var percent float64
		_ = json.Unmarshal(value, &percent)
		return job.Progress(percent, "")
	case "log":
		job.Log(jobline.LogInfo, textOf(value))
		return nil
	case "checkpoint":
		return job.SaveCheckpoint(value)
	case "partial":
		return job.Partial(value)
	case "finish_phase":
		var phase struct {
			Name   string
			Result json.RawMessage
		}
		_ = json.Unmarshal(value, &phase)
		return job.FinishPhase(phase.Name, phase.Result)
	case "wait_cancelled":
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(secondsOf(value)):
			return nil
		}
	}
	return fmt.Errorf("no such action: %s", word)
}

func textOf(value json.RawMessage) (text string) {
	_ = json.Unmarshal(value, &text)
	return text
}

func secondsOf(value json.RawMessage) time.Duration {
	var number float64
	_ = json.Unmarshal(value, &number)
	return seconds(number)
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }
