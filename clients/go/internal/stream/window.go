package stream

import "github.com/jobline/jobline/clients/go/joblinev1"

// window is how much may be unfinished at the worker at any time.
type window struct {
	jobs  int32
	bytes int64
}

const (
	// Windows of jobs that are settled and not confirmed: then no more jobs are asked for. A server counts a job no
	// more as soon as it has decided its settle, and confirms it after the commit, which may take minutes: a disk may
	// be full. It gets up to unconfirmedMax settles before a confirm, each with at most a window of jobs, and one
	// window more is settled here; three more are for leases that were lost meanwhile.
	pauseWindows = unconfirmedMax + 4
	// Windows of those with which a server is left that sends jobs: a window of them was on its way when no more were
	// asked for, and another one at hand.
	leaveWindows = pauseWindows + 2
	// What may be held beyond the windows: one shrinks while jobs are on their way, and a lost lease makes room at the
	// server before it is known here.
	surplusJobs  = 100
	surplusBytes = 64 << 20
)

// SetWindow sets how many jobs may be unfinished here at any time; 0 pauses.
func (s *Session) SetWindow(jobs int) {
	s.window.jobs = int32(jobs)
	s.largestJobs = max(s.largestJobs, jobs)
}

// windowDue returns the window that the server is to know: none while it has too much to confirm.
func (s *Session) windowDue() window {
	due := s.window
	if s.isDraining || s.settles.jobs() >= pauseWindows*s.largestJobs {
		due.jobs = 0
	}
	return due
}

func (s *Session) putWindow(frame *joblinev1.StreamRequest) {
	due := s.windowDue()
	frame.Window = &joblinev1.StreamWindow{MaxInFlight: due.jobs, MaxInFlightBytes: due.bytes}
	s.windowSent = &due
}

// hasRoom reports whether the server may send one more job. A correct one may send the largest window again beside what
// is held: it counts a lease no more that a handler has ended by a call of its own, and the worker holds it until that
// handler returns.
func (s *Session) hasRoom() bool {
	return len(s.held) < s.jobsMax() && s.heldBytes < 2*s.window.bytes+surplusBytes
}

// jobsMax returns how many jobs may be held, whatever the server says.
func (s *Session) jobsMax() int { return 2*s.largestJobs + surplusJobs }

// hasConfirmed reports whether the server has confirmed enough to send jobs: what it has not would fill the memory.
func (s *Session) hasConfirmed() bool {
	return s.settles.jobs() <= leaveWindows*s.largestJobs+surplusJobs
}
