package jobline

import "slices"

// Results of all phases of a job together.
const phaseResultsMax = 1 << 20

// Phase returns the first phase of the job that is not finished, by this attempt or an earlier one;
// "" once all are, or if it has none.
func (j *LeasedJob) Phase() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.phase()
}

func (j *LeasedJob) phase() string {
	names := j.job.Options().GetPhases()
	if len(j.finished) < len(names) {
		return names[len(j.finished)]
	}
	return ""
}

// FinishPhase finishes the current phase, with bytes or any value as JSON as its result; nil for none.
// Results have ≤ 1 MiB for all phases of the job.
func (j *LeasedJob) FinishPhase(name string, result any) error {
	data, err := j.encode(result)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if current := j.phase(); name == "" || name != current {
		return refuse("phase", "%q cannot be finished now: the current one is %q", name, current)
	}
	size := len(data)
	for _, other := range j.finished {
		size += len(other)
	}
	if size > phaseResultsMax {
		return refuse("phase", "results of phases are at most 1 MiB together, not %d bytes", size)
	}
	j.finished = append(j.finished, data)
	j.run.session.finishPhase(j.job, name, data)
	return nil
}

// PhaseResult reads the result of a finished phase into a value. It returns false, and leaves the
// value alone, if the phase is not finished.
func (j *LeasedJob) PhaseResult(name string, into any) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.Index(j.job.Options().GetPhases(), name)
	if at < 0 || at >= len(j.finished) {
		return false, nil
	}
	return true, j.decode(j.finished[at], into)
}

// RunPhase runs a phase unless it is finished, and returns its result, from this attempt or an earlier
// one.
func RunPhase[T, R any](job *Job[T], name string, phase func() (R, error)) (R, error) {
	var result R
	isFinished, err := job.PhaseResult(name, &result)
	if isFinished || err != nil {
		return result, err
	}
	result, err = phase()
	if err != nil {
		return result, err
	}
	return result, job.FinishPhase(name, result)
}
