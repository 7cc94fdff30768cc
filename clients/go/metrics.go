package jobline

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobline/jobline/clients/go/internal/stream"
	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Names of handlers that metrics tell apart; the rest are "other". Names come with jobs, so without a
// limit a producer could fill the memory of its workers.
const metricNamesMax = 100

// outcomeNames are the values of the label "outcome", alike in all languages.
var outcomeNames = [...]string{"completed", "failed", "retried", "snoozed", "cancelled", "dead", "rate_limited", "released"}

const (
	countCompleted = iota
	countFailed
	countRetried
	countSnoozed
	countCancelled
	countDead
	countLimited
	countReleased
)

// workerMetrics count what a worker does. Only the times of handlers cost something for each job; they
// are taken if the worker has a health port.
type workerMetrics struct {
	settled    [len(outcomeNames)]atomic.Int64
	reconnects atomic.Int64
	abandoned  atomic.Int64

	mu    sync.RWMutex
	times map[string]*histogram
}

func newWorkerMetrics() *workerMetrics { return &workerMetrics{times: map[string]*histogram{}} }

// settle counts a settle that is on its way.
func (m *workerMetrics) settle(item stream.Item) {
	m.settled[countOf(item)].Add(1)
}

func countOf(item stream.Item) int {
	switch one := item.(type) {
	case *joblinev1.FailItem:
		switch {
		case one.GetThen() == joblinev1.FailAction_FAIL_ACTION_CANCEL:
			return countCancelled
		case one.GetThen() == joblinev1.FailAction_FAIL_ACTION_DEAD:
			return countDead
		case one.GetRetryAfter() != nil:
			return countRetried
		}
		return countFailed
	case *joblinev1.ReleaseItem:
		switch one.GetWhy() {
		case joblinev1.ReleaseReason_RELEASE_REASON_SNOOZE:
			return countSnoozed
		case joblinev1.ReleaseReason_RELEASE_REASON_LIMITED:
			return countLimited
		}
	}
	return countReleased
}

// took records how long a call of a handler took.
func (m *workerMetrics) took(name string, time time.Duration) {
	m.mu.RLock()
	h := m.times[name]
	m.mu.RUnlock()
	if h == nil {
		h = m.histogram(name)
	}
	h.add(time)
}

func (m *workerMetrics) histogram(name string) *histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times[name] == nil && len(m.times) >= metricNamesMax {
		name = "other"
	}
	if m.times[name] == nil {
		m.times[name] = &histogram{}
	}
	return m.times[name]
}

var bucketBounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
}

// histogram counts times by how long they are.
type histogram struct {
	buckets [len(bucketBounds) + 1]atomic.Int64
	nanos   atomic.Int64
}

func (h *histogram) add(time time.Duration) {
	place := 0
	for place < len(bucketBounds) && time > bucketBounds[place] {
		place++
	}
	h.buckets[place].Add(1)
	h.nanos.Add(int64(time))
}

// write writes all metrics in the text format of Prometheus, version 0.0.4.
func (m *workerMetrics) write(to io.Writer, isUp bool, running, slots int) {
	up := 0
	if isUp {
		up = 1
	}
	writeMetric(to, "jobline_worker_up", "gauge", "1 while there is a stream.", int64(up))
	writeMetric(to, "jobline_worker_running_jobs", "gauge", "Jobs whose handlers run.", int64(running))
	writeMetric(to, "jobline_worker_slots", "gauge", "Handlers that may run at once.", int64(slots))
	writeHead(to, "jobline_worker_settled_jobs_total", "counter", "Jobs settled, by what the worker said of them.")
	for i, outcome := range outcomeNames {
		_, _ = fmt.Fprintf(to, "jobline_worker_settled_jobs_total{outcome=\"%s\"} %d\n", outcome, m.settled[i].Load())
	}
	writeMetric(to, "jobline_worker_reconnects_total", "counter", "Streams opened after the first.", m.reconnects.Load())
	writeMetric(to, "jobline_worker_abandoned_handlers_total", "counter", "Handlers that ignored their end.", m.abandoned.Load())
	writeHead(to, "jobline_worker_handler_seconds", "histogram", "Time of calls of handlers, by name of the job.")
	m.mu.RLock()
	times := maps.Clone(m.times)
	m.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(times)) {
		times[name].write(to, labelText(name))
	}
}

func (h *histogram) write(to io.Writer, name string) {
	total := int64(0)
	for i := range h.buckets {
		total += h.buckets[i].Load()
		bound := "+Inf"
		if i < len(bucketBounds) {
			bound = strconv.FormatFloat(bucketBounds[i].Seconds(), 'g', -1, 64)
		}
		_, _ = fmt.Fprintf(to, "jobline_worker_handler_seconds_bucket{name=\"%s\",le=\"%s\"} %d\n", name, bound, total)
	}
	_, _ = fmt.Fprintf(to, "jobline_worker_handler_seconds_sum{name=\"%s\"} %g\n", name, time.Duration(h.nanos.Load()).Seconds())
	_, _ = fmt.Fprintf(to, "jobline_worker_handler_seconds_count{name=\"%s\"} %d\n", name, total)
}

func writeMetric(to io.Writer, name, kind, help string, value int64) {
	writeHead(to, name, kind, help)
	_, _ = fmt.Fprintf(to, "%s %d\n", name, value)
}

func writeHead(to io.Writer, name, kind, help string) {
	_, _ = fmt.Fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labelText(name string) string { return labelEscapes.Replace(name) }
