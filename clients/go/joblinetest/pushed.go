package joblinetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

const (
	// What an assertion shows of the jobs that are there.
	shownJobs  = 20
	shownBytes = 200
	pageSize   = 1_000
)

// Job is a job as the server has it: its state, options, error, checkpoint and so on.
type Job struct {
	*joblinev1.Job
	kit *Kit
}

// PayloadInto reads the payload into a value: as it is into a *[]byte, else from JSON. Like ResultInto it
// fails the test if it cannot be read.
func (j *Job) PayloadInto(into any) { j.kit.t.Helper(); j.read("payload", j.GetPayload(), into) }

// ResultInto reads what the handler returned into a value.
func (j *Job) ResultInto(into any) { j.kit.t.Helper(); j.read("result", j.GetResult(), into) }

func (j *Job) read(what string, data []byte, into any) {
	j.kit.t.Helper()
	data, _, err := j.kit.options.Client.Codec.Open(data)
	if err == nil {
		err = jobline.Decode(data, into)
	}
	if err != nil {
		j.kit.t.Fatalf("joblinetest: the %s of job %d: %v: %s", what, j.GetId(), err, short(data))
	}
}

// payload returns the payload, opened; sealed, if it cannot be.
func (j *Job) payload() []byte {
	if plain, _, err := j.kit.options.Client.Codec.Open(j.GetPayload()); err == nil {
		return plain
	}
	return j.GetPayload()
}

// AssertPushed returns the first job with a name, "" for any, for which all matches hold. It fails the test,
// and shows the jobs that there are, if there is none; with [Times], if there are not as many. Jobs are
// those that wait, run or have ended; one that was removed after its end is not among them.
func (k *Kit) AssertPushed(name string, matches ...Match) *Job {
	k.t.Helper()
	q, found := k.find(name, matches)
	switch {
	case q.times != nil && len(found) != *q.times:
		k.t.Fatalf("joblinetest: %d jobs match, not %d: %s\nthere are:\n%s", len(found), *q.times, q, k.shown(found))
	case q.times == nil && len(found) == 0:
		k.t.Fatalf("joblinetest: no job matches: %s\nthere are:\n%s", q, k.shown(nil))
	case len(found) == 0: // as was asked: Times(0)
		return nil
	}
	return found[0]
}

// RefutePushed fails the test if there is a job with a name, "" for any, for which all matches hold.
func (k *Kit) RefutePushed(name string, matches ...Match) {
	k.t.Helper()
	if q, found := k.find(name, matches); len(found) > 0 {
		k.t.Fatalf("joblinetest: jobs match: %s\n%s", q, k.shown(found))
	}
}

// Pushed returns the jobs with a name, "" for any, for which all matches hold, by id.
func (k *Kit) Pushed(name string, matches ...Match) []*Job {
	k.t.Helper()
	_, found := k.find(name, matches)
	return found
}

// Job returns a job by its id.
func (k *Kit) Job(id uint64) *Job {
	k.t.Helper()
	ctx, cancel := within(callTime)
	defer cancel()
	response, err := k.jobs.GetJob(ctx, &joblinev1.GetJobRequest{Job: &joblinev1.GetJobRequest_Id{Id: id}})
	if err != nil {
		k.fatal("Job", err)
	}
	return &Job{response.GetJob(), k}
}

func (k *Kit) find(name string, matches []Match) (*query, []*Job) {
	k.t.Helper()
	q := &query{filter: &joblinev1.JobFilter{}}
	if name != "" {
		q.filter.Name = &name
		q.say("name %q", name)
	}
	for _, match := range matches {
		match(q)
	}
	if q.err != nil {
		k.t.Fatalf("joblinetest: %v", q.err)
	}
	var found []*Job
	for _, job := range k.list(q.filter) {
		if q.holds(job) {
			found = append(found, job)
		}
	}
	return q, found
}

func (k *Kit) list(filter *joblinev1.JobFilter) []*Job {
	k.t.Helper()
	ctx, cancel := within(callTime)
	defer cancel()
	var jobs []*Job
	for token := ""; ; {
		response, err := k.jobs.ListJobs(ctx, &joblinev1.ListJobsRequest{
			Filter: filter, PageSize: pageSize, PageToken: token, IncludePayloads: true,
		})
		if err != nil {
			k.fatal("ListJobs", err)
		}
		for _, job := range response.GetJobs() {
			jobs = append(jobs, &Job{job, k})
		}
		if token = response.GetNextPageToken(); token == "" {
			return jobs
		}
	}
}

// shown returns jobs, or all that there are, as lines of a message.
func (k *Kit) shown(jobs []*Job) string {
	k.t.Helper()
	if len(jobs) == 0 {
		jobs = k.list(nil)
	}
	if len(jobs) == 0 {
		return "  none"
	}
	var lines []string
	for _, job := range jobs[:min(len(jobs), shownJobs)] {
		name := job.GetQueue()
		if job.GetOptions().GetName() != "" {
			name += "/" + job.GetOptions().GetName()
		}
		state := strings.TrimPrefix(job.GetState().String(), "JOB_STATE_")
		line := fmt.Sprintf("  %d %s %s %s", job.GetId(), name, state, short(job.payload()))
		if failure := job.GetError(); failure != nil {
			line += " " + cut(fmt.Sprintf("%s: %q", failure.GetType(), failure.GetMessage()))
		}
		lines = append(lines, line)
	}
	if len(jobs) > shownJobs {
		lines = append(lines, fmt.Sprintf("  and %d more", len(jobs)-shownJobs))
	}
	return strings.Join(lines, "\n")
}

func short(data []byte) string {
	text := string(data)
	if !json.Valid(data) {
		text = fmt.Sprintf("%q", data)
	}
	return cut(text)
}

func cut(text string) string {
	if len(text) > shownBytes {
		return strings.ToValidUTF8(text[:shownBytes], "") + "…"
	}
	return text
}

// plain returns bytes as the values of JSON, or as they are if they are none.
func plain(data []byte) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // ids are larger than a float is exact
	if decoder.Decode(&value) != nil || decoder.More() {
		return data
	}
	return value
}

// contains reports whether a payload has a part: some of the keys of an object, at any depth, with these
// values; some items of a list; or, where the payload is a text or bytes, a piece of it.
func contains(value, part any) bool {
	switch v := value.(type) {
	case string:
		if p, ok := part.(string); ok {
			return strings.Contains(v, p)
		}
	case []byte:
		if p, ok := part.([]byte); ok {
			return bytes.Contains(v, p)
		}
	}
	return has(value, part)
}

func has(value, part any) bool {
	switch p := part.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		for key, wanted := range p {
			got, isThere := v[key]
			ok = ok && isThere && has(got, wanted)
		}
		return ok
	case []any:
		v, ok := value.([]any)
		for _, wanted := range p {
			isAny := false
			for _, item := range v {
				isAny = isAny || has(item, wanted)
			}
			ok = ok && isAny
		}
		return ok
	}
	return reflect.DeepEqual(value, part)
}
