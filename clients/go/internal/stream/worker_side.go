package stream

import (
	"time"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Ack settles a job as done. It returns false if its lease was lost meanwhile; nothing is sent then.
func (s *Session) Ack(job *Job, result []byte) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.drop(job)
	s.reports.forget(job.lease())
	s.settles.ack(job.ID, job.Delivery, result)
	return true
}

// Settle settles a job as failed or released. It returns false if its lease was lost meanwhile.
func (s *Session) Settle(item Item) bool {
	job := s.held[item.GetId()]
	if job == nil || job.Delivery != item.GetDelivery() {
		return false
	}
	s.drop(job)
	s.reports.settled(job.lease())
	s.settles.add(item)
	return true
}

// Leave drops a lease without a settle: another call has ended it, or the server will when the stream
// has ended. It returns false if the lease was not held.
func (s *Session) Leave(job *Job) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.drop(job)
	s.reports.forget(job.lease())
	s.windowSent = nil // any frame has the server look for other jobs
	return true
}

// ReleaseWaiting gives back all jobs that have not begun, and returns how many.
func (s *Session) ReleaseWaiting() int {
	count := 0
	for _, job := range s.held {
		if job.state.CompareAndSwap(waiting, gone) {
			s.Settle(Interrupted(job.ID, job.Delivery))
			count++
		}
	}
	return count
}

// ReleaseAll gives back all jobs, and returns how many. Those that may run only once, and have begun,
// are left to the server, which ends them.
func (s *Session) ReleaseAll() int {
	count := s.ReleaseWaiting()
	for _, job := range s.held {
		if job.IsOnce() {
			s.Leave(job)
			continue
		}
		s.Settle(Interrupted(job.ID, job.Delivery))
		count++
	}
	return count
}

// Fence calls passed when the server has handled all reports so far.
func (s *Session) Fence(passed func()) { s.settles.fence(passed) }

// Report reports progress of a job, or saves a checkpoint. It returns false if its lease was lost.
func (s *Session) Report(job *Job, report Report) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.reports.add(job.lease(), report)
	return true
}

// Piece sends a piece of the job's result.
func (s *Session) Piece(job *Job, data []byte) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.reports.pieces.add(job.lease(), data)
	return true
}

// FinishPhase finishes a phase of a job.
func (s *Session) FinishPhase(job *Job, name string, result []byte) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.reports.finishPhase(job.lease(), name, result)
	return true
}

// Log adds a line to the log of a job.
func (s *Session) Log(job *Job, line Line) bool {
	if s.held[job.ID] != job {
		return false
	}
	s.lines.add(job.lease(), line)
	return true
}

// Drain asks for no more jobs. Settle what is held, then the stream may be half-closed.
func (s *Session) Drain() { s.isDraining = true }

// Held returns the jobs that are held and not settled.
func (s *Session) Held() map[uint64]*Job { return s.held }

// IsOpen reports whether the server has answered on the current stream.
func (s *Session) IsOpen() bool { return s.isOpen }

// IsDraining reports whether Drain was called.
func (s *Session) IsDraining() bool { return s.isDraining }

// Goaway returns the server's request to open another stream, if there is one.
func (s *Session) Goaway() *joblinev1.StreamGoaway { return s.goaway }

// MayHalfClose reports whether no job can come any more, and everything settled was sent.
func (s *Session) MayHalfClose() bool {
	isUnsent := len(s.resent) > 0 || !s.reports.isEmpty() || !s.lines.waiting.isEmpty() || s.settles.hasWaiting()
	return s.isDrained && len(s.held) == 0 && !isUnsent
}

// IsConfirmed reports whether nothing is held and the server has confirmed every settle.
func (s *Session) IsConfirmed() bool {
	return len(s.held) == 0 && !s.settles.hasWaiting() && len(s.settles.unconfirmed) == 0
}

// NextDeadline returns when to call Frames again, if nothing happens before.
func (s *Session) NextDeadline(now time.Time) time.Time {
	if !s.isOpen {
		return now.Add(Far)
	}
	return s.heartbeat.nextFrame(len(s.held) > 0)
}

// NextSilenceCheck returns when to call IsSilent again.
func (s *Session) NextSilenceCheck(now time.Time) time.Time {
	if !s.hasStream {
		return now.Add(Far)
	}
	return s.heartbeat.nextCheck()
}

// IsSilent reports whether the server was silent for too long: end the stream and open another.
func (s *Session) IsSilent(now time.Time) bool { return s.heartbeat.isSilent(now) && s.hasStream }
