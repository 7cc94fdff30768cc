package joblinetest

import (
	"fmt"
	"reflect"
	"strings"

	jobline "github.com/jobline/jobline/clients/go"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Match is what must hold for a job that an assertion is about.
type Match func(*query)

// query is what is asked for: by the server's filter, and by the payload here.
type query struct {
	filter *joblinev1.JobFilter
	checks []func(*Job) bool
	times  *int
	words  []string
	err    error
}

func (q *query) say(format string, arguments ...any) {
	q.words = append(q.words, fmt.Sprintf(format, arguments...))
}

func (q *query) String() string {
	if len(q.words) == 0 {
		return "any"
	}
	return strings.Join(q.words, ", ")
}

func (q *query) holds(job *Job) bool {
	for _, check := range q.checks {
		if !check(job) {
			return false
		}
	}
	return true
}

// Queue matches jobs of a queue.
func Queue(queue string) Match {
	return func(q *query) { q.filter.Queue = queue; q.say("queue %q", queue) }
}

// In matches jobs in one of some states, such as jobline.StateCompleted.
func In(states ...jobline.JobState) Match {
	return func(q *query) { q.filter.States = states; q.say("state %v", states) }
}

// Group matches jobs of a group.
func Group(group string) Match {
	return func(q *query) { q.filter.Group = group; q.say("group %q", group) }
}

// Tags matches jobs that have all of these tags.
func Tags(tags ...string) Match {
	return func(q *query) { q.filter.Tags = append(q.filter.Tags, tags...); q.say("tags %q", tags) }
}

// Header matches jobs with a header.
func Header(key, value string) Match {
	return func(q *query) {
		if q.filter.Headers == nil {
			q.filter.Headers = map[string]string{}
		}
		q.filter.Headers[key] = value
		q.say("header %q = %q", key, value)
	}
}

// Payload matches jobs whose payload is the same as that of a push of this value.
func Payload(value any) Match {
	return payload("payload", value, reflect.DeepEqual)
}

// PayloadHas matches jobs whose payload has a part: some of the keys of an object, at any depth, with these
// values (map[string]any, or a struct with tags and omitempty); some items of a list; or, where the
// payload is a text or bytes, a piece of it.
func PayloadHas(part any) Match {
	return payload("payload with", part, contains)
}

func payload(what string, value any, holds func(payload, value any) bool) Match {
	return func(q *query) {
		data, contentType, err := jobline.Encode(value)
		if err != nil {
			q.err = err
			return
		}
		wanted := any(data)
		if contentType != "" {
			wanted = plain(data)
		}
		q.say("%s %s", what, short(data))
		q.checks = append(q.checks, func(job *Job) bool {
			return holds(plain(job.payload()), wanted) || holds(any(job.payload()), wanted)
		})
	}
}

// Where matches jobs for which a function holds.
func Where(holds func(*Job) bool) Match {
	return func(q *query) { q.checks = append(q.checks, holds); q.say("a condition of the test") }
}

// Times has an assertion fail unless so many jobs match.
func Times(count int) Match {
	return func(q *query) { q.times = &count }
}
