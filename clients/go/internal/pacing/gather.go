package pacing

import "time"

// Gather collects the jobs of batch handlers until a batch is full, or its first job has waited long
// enough.
type Gather[K comparable, J any] struct {
	batches map[K]*gathering[J]
}

type gathering[J any] struct {
	jobs  []J
	dueAt time.Time
}

// Add adds a job; it returns the batch that it completes, if any.
func (g *Gather[K, J]) Add(now time.Time, key K, job J, size int, wait time.Duration) []J {
	if g.batches == nil {
		g.batches = map[K]*gathering[J]{}
	}
	batch := g.batches[key]
	if batch == nil {
		batch = &gathering[J]{dueAt: now.Add(wait)}
		g.batches[key] = batch
	}
	batch.jobs = append(batch.jobs, job)
	if len(batch.jobs) < size {
		return nil
	}
	delete(g.batches, key)
	return batch.jobs
}

// Due removes the batches whose time has come, and passes them on; it returns the time until the next
// one, and whether there is one.
func (g *Gather[K, J]) Due(now time.Time, take func(K, []J)) (time.Duration, bool) {
	next, isNext := time.Duration(0), false
	for key, batch := range g.batches {
		left := batch.dueAt.Sub(now)
		if left <= 0 {
			delete(g.batches, key)
			take(key, batch.jobs)
		} else if !isNext || left < next {
			next, isNext = left, true
		}
	}
	return next, isNext
}

// Clear drops all jobs.
func (g *Gather[K, J]) Clear() { g.batches = nil }

// Grace is how long handlers may run on after they were asked to stop.
type Grace[K comparable] struct {
	Length time.Duration
	since  map[K]time.Time
	told   map[K]bool
}

// Expired returns the handlers whose grace period has just ended, and the time until the next one.
// stopping are all that were asked to stop and still run; others are forgotten.
func (g *Grace[K]) Expired(now time.Time, stopping []K) (late []K, next time.Duration, isNext bool) {
	since, told := map[K]time.Time{}, map[K]bool{}
	for _, key := range stopping {
		from, ok := g.since[key]
		if !ok {
			from = now
		}
		since[key] = from
		left := from.Add(g.Length).Sub(now)
		switch {
		case g.told[key]:
			told[key] = true
		case left <= 0:
			told[key] = true
			late = append(late, key)
		case !isNext || left < next:
			next, isNext = left, true
		}
	}
	g.since, g.told = since, told
	return late, next, isNext
}
