package jobline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// What a server refuses of a job whatever it holds, and whatever its settings are. A push leaves these checks to the
// server; a job of an outbox is pushed when nobody waits for it any more. The tests of the outbox hold both together.

const (
	nameCharactersMax    = 256
	keyBytesMax          = 256
	headersMax           = 64
	headersBytesMax      = 8 << 10
	tagsMax              = 16
	wordCharactersMax    = 128 // of a tag, and of the name of a phase
	phasesMax            = 100
	limitersMax          = 4
	parentsMax           = 1_000
	attemptsMax          = 1_000
	pauseMax             = 24 * time.Hour
	pausesMax            = 100
	keptJobsMax          = 10_000_000
	costMax              = 1_000_000
	slotsMax             = 1_000
	urlCharactersMax     = 2_048
	leaseMin, leaseMax   = time.Second, 12 * time.Hour
	uniqueMin, uniqueMax = time.Millisecond, dayMax
)

// checkJob returns why a server would refuse a job, nil if that depends on more than the job.
func checkJob(queue string, job *joblinev1.NewJob) error {
	o := job.GetOptions()
	return cmp.Or(
		checkName("queue", queue),
		checkText("job_key", job.GetJobKey(), keyBytesMax, bytesOf),
		checkMoment("run_at", job.GetRunAt()),
		checkStart(job),
		checkTexts(o),
		checkLists(o),
		checkNumbers(o),
		checkSpans(o),
		checkParts(o),
		checkEnum("options.delivery", o.GetDelivery()),
		checkEnum("options.on_dependency_failure", o.GetOnDependencyFailure()),
		checkEnum("options.unique_mode", o.GetUniqueMode()),
	)
}

func checkStart(job *joblinev1.NewJob) error {
	o := job.GetOptions()
	isDebounce := o.GetUniqueMode() == UniqueDebounce
	switch {
	case job.GetRunAt() != nil && job.GetRunAt().AsTime().After(time.Now().Add(dayMax)):
		return refuse("run_at", "must be at most 400 days ahead")
	case isDebounce && job.GetStart() == nil:
		return refuse("options.unique_mode", "UniqueDebounce needs Delay or RunAt")
	case o.GetUniqueMaxWait() != nil && o.GetUniqueMode() != 0 && !isDebounce:
		return refuse("options.unique_max_wait", "only UniqueDebounce has one")
	}
	return nil
}

func checkTexts(o *joblinev1.JobOptions) error {
	err := cmp.Or(
		checkText("options.name", o.GetName(), nameCharactersMax, utf8.RuneCountInString),
		checkText("options.content_type", o.GetContentType(), nameCharactersMax, utf8.RuneCountInString),
		checkText("options.group", o.GetGroup(), nameCharactersMax, utf8.RuneCountInString),
		checkText("options.unique_key", o.GetUniqueKey(), keyBytesMax, bytesOf),
		checkURL("options.webhook", o.GetWebhook()),
		checkHeaders("options.headers", o.GetHeaders()),
	)
	if given := o.GetMinWorkerVersion(); err == nil && given != "" && !version.MatchString(given) {
		return refuse("options.min_worker_version", "must be 1 to 64 of A-Z a-z 0-9 . + _ -, the first a letter or digit")
	}
	return err
}

func checkHeaders(field string, headers map[string]string) error {
	bytes := 0
	for key, value := range headers {
		if key == "" {
			return refuse(field, "a header needs a name")
		}
		if err := checkText(field, key+value, headersBytesMax, bytesOf); err != nil {
			return err
		}
		bytes += len(key) + len(value)
	}
	if bytes > headersBytesMax {
		return refuse(field, "must be at most %d bytes together, and are %d", headersBytesMax, bytes)
	}
	return checkCount(field, len(headers), headersMax)
}

func checkLists(o *joblinev1.JobOptions) error {
	err := cmp.Or(
		checkCount("options.depends_on", len(o.GetDependsOn()), parentsMax),
		checkCount("options.limiters", len(o.GetLimiters()), limitersMax),
		checkWords("options.tags", withoutPairs(o.GetTags()), tagsMax),
		checkWords("options.phases", o.GetPhases(), phasesMax),
	)
	for i, name := range o.GetLimiters() {
		err = cmp.Or(err, checkName(fmt.Sprintf("options.limiters[%d]", i), name))
	}
	seen := map[string]bool{}
	for _, name := range o.GetPhases() {
		if seen[name] {
			err = cmp.Or(err, error(refuse("options.phases", "must be different names, and has %q twice", name)))
		}
		seen[name] = true
	}
	return err
}

// withoutPairs returns tags with "name:value" for those that the codec of a relay may hash: any text can be of these.
func withoutPairs(tags []string) []string {
	plain := slices.Clone(tags)
	for i, tag := range plain {
		if strings.Contains(tag, ":") {
			plain[i] = "name:value"
		}
	}
	return plain
}

func checkWords(field string, words []string, most int) error {
	err := checkCount(field, len(words), most)
	for i, word := range words {
		if word == "" {
			err = cmp.Or(err, error(refuse(field, "must not be empty")))
		}
		err = cmp.Or(err, checkText(fmt.Sprintf("%s[%d]", field, i), word, wordCharactersMax, utf8.RuneCountInString))
	}
	return err
}

func checkNumbers(o *joblinev1.JobOptions) error {
	if o == nil {
		return nil
	}
	kept := o.GetRetention()
	if kept == nil {
		kept = &joblinev1.Retention{}
	}
	return cmp.Or(
		checkNumber("options.max_attempts", o.MaxAttempts, 0, attemptsMax),
		checkNumber("options.max_stalls", o.MaxStalls, 0, attemptsMax),
		checkNumber("options.cost", o.Cost, 1, costMax),
		checkNumber("options.slots", o.Slots, 1, slotsMax),
		checkNumber("options.retention.count", kept.Count, 0, keptJobsMax),
	)
}

func checkSpans(o *joblinev1.JobOptions) error {
	shortest := time.Second // of a timeout; 0 is none
	if o.GetTimeout().AsDuration() == 0 {
		shortest = 0
	}
	return cmp.Or(
		checkSpan("options.lease", o.GetLease(), leaseMin, leaseMax),
		checkSpan("options.ttl", o.GetTtl(), 0, dayMax),
		checkSpan("options.timeout", o.GetTimeout(), shortest, dayMax),
		checkSpan("options.unique_ttl", o.GetUniqueTtl(), uniqueMin, uniqueMax),
		checkSpan("options.unique_max_wait", o.GetUniqueMaxWait(), 0, uniqueMax),
		checkSpan("options.block_timeout", o.GetBlockTimeout(), 0, dayMax),
		checkSpan("options.retention.age", o.GetRetention().GetAge(), 0, dayMax),
		checkSpan("options.retention.delete_after", o.GetRetention().GetDeleteAfter(), 0, dayMax),
		checkSpan("options.backoff.base", o.GetBackoff().GetBase(), 0, pauseMax),
		checkSpan("options.backoff.max_delay", o.GetBackoff().GetMaxDelay(), 0, pauseMax),
		checkMoment("options.retry_until", o.GetRetryUntil()),
	)
}

// checkParts checks what a backoff has beside its spans.
func checkParts(o *joblinev1.JobOptions) error {
	b := o.GetBackoff()
	err := checkCount("options.backoff.delays", len(b.GetDelays()), pausesMax)
	for i, delay := range b.GetDelays() {
		err = cmp.Or(err, checkSpan(fmt.Sprintf("options.backoff.delays[%d]", i), delay, 0, pauseMax))
	}
	switch {
	case err != nil:
		return err
	case math.IsNaN(b.GetJitter()) || b.GetJitter() < 0 || b.GetJitter() > 1:
		return refuse("options.backoff.jitter", "must be 0 to 1, or None, not %v", b.GetJitter())
	case len(b.GetDelays()) > 0 && (b.GetKind() != 0 || b.GetBase() != nil || b.GetMaxDelay() != nil):
		return refuse("options.backoff.delays", "not together with Fixed, Base or Max")
	}
	return nil
}
