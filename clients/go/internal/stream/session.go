package stream

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/jobline/jobline/clients/go/joblinev1"
)

// Session is the state of one worker towards one server, over all its streams. It returns the frames
// to send, handles those of the server, and knows nothing of handlers. The caller passes the time in,
// and calls Frames again at NextDeadline.
type Session struct {
	opening       *joblinev1.StreamOpen
	settles       settles
	reports       reports
	lines         lines
	resent        []*joblinev1.StreamSettle
	window        window
	largestJobs   int // of all windows: jobs of that time may still be at hand
	settledBefore map[uint64]uint64
	held          map[uint64]*Job
	heldBytes     int64 // of their payloads
	id            string
	goaway        *joblinev1.StreamGoaway
	isDraining    bool

	// State of the current stream, if there is one.
	hasStream   bool
	isOpen      bool // and the server has answered on it
	mustOpen    bool
	windowSent  *window
	isDrainSent bool
	isDrained   bool // the server has confirmed it
	heartbeat   heartbeat
}

// The longest lease; more milliseconds than that are too many for a time.Duration.
const leaseMillisMax = int64(12 * time.Hour / time.Millisecond)

// NewSession returns a session that opens its streams with this message.
func NewSession(opening *joblinev1.StreamOpen, windowJobs int, windowBytes int64) *Session {
	return &Session{
		opening: opening, window: window{int32(windowJobs), windowBytes}, largestJobs: windowJobs, held: map[uint64]*Job{},
	}
}

// Connect begins a stream: Frames returns its first frame.
func (s *Session) Connect(now time.Time) {
	s.hasStream, s.isOpen, s.mustOpen = true, false, true
	s.goaway, s.windowSent, s.resent = nil, nil, nil
	s.isDrainSent, s.isDrained = false, false
	s.heartbeat.connect(now)
}

// Disconnect ends the stream. Leases and settles are kept for the next one.
func (s *Session) Disconnect() { s.hasStream, s.isOpen, s.mustOpen = false, false, false }

// HandleTaken starts a new session with the next stream: another stream has taken this one.
func (s *Session) HandleTaken() { s.id = "" }

// HandleRefusal drops all unconfirmed settles and reports, because the server refused one of them
// and would refuse it again. The next stream finds leases that are unknown here, and releases them.
func (s *Session) HandleRefusal() {
	s.settles = settles{seq: s.settles.seq, mayRepeat: true}
	s.reports, s.lines = reports{}, lines{}
}

// Handle handles a frame of the server; call Frames next.
func (s *Session) Handle(now time.Time, frame *joblinev1.StreamResponse) *Received {
	received := &Received{}
	if received.Wrong = s.wrongIn(frame); received.Wrong != "" {
		return received
	}
	s.heartbeat.received(now)
	if frame.GetOpened() != nil {
		s.handleOpened(now, frame.GetOpened(), received)
	}
	for _, confirm := range frame.GetConfirms() {
		received.Reports = append(received.Reports, s.settles.confirm(confirm)...)
	}
	if s.settledBefore != nil && len(s.settles.unconfirmed) == 0 {
		s.settledBefore = nil
	}
	for _, run := range frame.GetRuns() {
		jobs, isWhole := jobsOfRun(run, now, s.jobsMax())
		received.IsTooMany = received.IsTooMany || !isWhole
		s.take(jobs, run.GetLeaseMs(), run.GetDelivery() > 1, received)
	}
	for _, message := range frame.GetJobs() {
		job := &Job{ID: message.GetId(), Delivery: message.GetDelivery(), Payload: message.GetPayload(), Message: message, ReceivedAt: now}
		s.take([]*Job{job}, message.GetLeaseMs(), job.Delivery > 1, received)
	}
	// After the jobs: a job may be leased and revoked before its frame is sent.
	for _, revoke := range frame.GetRevokes() {
		s.handleRevoke(revoke, received)
	}
	received.Unhandled = frame.GetUnhandled()
	if frame.GetGoaway() != nil {
		s.goaway, received.Goaway = frame.GetGoaway(), frame.GetGoaway()
	}
	return received
}

func (s *Session) handleOpened(now time.Time, opened *joblinev1.StreamOpened, received *Received) {
	received.IsOpened, received.IsResumed = true, opened.GetResumed()
	s.id, s.isOpen = opened.GetSession(), true
	s.heartbeat.opened(now, opened.GetHeartbeatInterval().AsDuration())
	s.resent = s.settles.resend()
	s.settledBefore = s.settles.leases()
	theirs := map[uint64]uint64{}
	for i, id := range opened.GetHeldIds() {
		theirs[id] = opened.GetHeldDeliveries()[i]
	}
	for id, job := range s.held {
		if theirs[id] != job.Delivery {
			s.lose(job, joblinev1.RevokeReason_REVOKE_REASON_LEASE_LOST, received)
		}
	}
	for id, delivery := range theirs {
		if s.held[id] == nil && s.settledBefore[id] != delivery {
			// Leased in a frame that never arrived. It must be released here: every frame of this
			// stream keeps it leased.
			s.settles.add(Interrupted(id, delivery))
		}
	}
	s.reports.repeat()
}

func (s *Session) handleRevoke(revoke *joblinev1.StreamRevoke, received *Received) {
	job := s.held[revoke.GetId()]
	if job == nil || job.Delivery != revoke.GetDelivery() {
		return // settled meanwhile, or a lease that is lost already
	}
	if revoke.GetReason() == joblinev1.RevokeReason_REVOKE_REASON_CANCELLED {
		received.Lost = append(received.Lost, LostLease{job, revoke.GetReason()})
		return
	}
	s.lose(job, revoke.GetReason(), received)
}

func (s *Session) take(jobs []*Job, leaseMillis int64, isRepeated bool, received *Received) {
	s.heartbeat.leased(time.Duration(min(leaseMillis, leaseMillisMax))*time.Millisecond, len(s.held) > 0)
	s.settles.mayRepeat = s.settles.mayRepeat || isRepeated
	for _, job := range jobs {
		if !s.isNew(job, received) {
			continue
		}
		if !s.hasRoom() {
			received.IsTooMany = true
			continue
		}
		s.held[job.ID] = job
		s.heldBytes += int64(len(job.Payload))
		received.Jobs = append(received.Jobs, job)
	}
}

// isNew reports whether to run a leased job: not one whose lease runs or was settled already. A newer
// lease ends an older one.
func (s *Session) isNew(job *Job, received *Received) bool {
	isResumed := job.Message.GetReason() == joblinev1.LeaseReason_LEASE_REASON_RESUMED
	if isResumed && s.settledBefore[job.ID] == job.Delivery {
		return false
	}
	known := s.held[job.ID]
	if known == nil {
		return true
	}
	if known.Delivery == job.Delivery {
		return false
	}
	s.lose(known, joblinev1.RevokeReason_REVOKE_REASON_LEASE_LOST, received)
	return true
}

func (s *Session) lose(job *Job, reason joblinev1.RevokeReason, received *Received) {
	s.drop(job)
	s.reports.lose(job.lease())
	s.lines.waiting.remove(job.lease())
	received.Lost = append(received.Lost, LostLease{job, reason})
}

func (s *Session) drop(job *Job) {
	delete(s.held, job.ID)
	s.heldBytes -= int64(len(job.Payload))
	job.state.Store(gone)
}

// Frames returns the frames that are due now, in order.
func (s *Session) Frames(now time.Time) []*joblinev1.StreamRequest {
	if s.mustOpen {
		s.mustOpen = false
		s.heartbeat.sentAt = now
		return []*joblinev1.StreamRequest{s.openFrame()}
	}
	if !s.isOpen {
		return nil
	}
	var frames []*joblinev1.StreamRequest
	for frame := s.nextFrame(); frame != nil; frame = s.nextFrame() {
		frames = append(frames, frame)
	}
	if len(frames) == 0 && !now.Before(s.NextDeadline(now)) {
		frames = append(frames, &joblinev1.StreamRequest{})
	}
	if len(frames) > 0 {
		s.heartbeat.sentAt = now
	}
	return frames
}

func (s *Session) openFrame() *joblinev1.StreamRequest {
	open := proto.CloneOf(s.opening)
	open.Session = s.id
	frame := &joblinev1.StreamRequest{Open: open}
	s.putWindow(frame)
	return frame
}

// nextFrame returns one frame with as much as it may carry; nil if nothing is due.
func (s *Session) nextFrame() *joblinev1.StreamRequest {
	if s.isDraining && !s.isDrainSent {
		// Before the jobs that are given back: they would come again.
		s.isDrainSent = true
		s.settles.fence(func() { s.isDrained = true }) // no job comes after its confirm
		return &joblinev1.StreamRequest{Drain: true}
	}
	if !s.reports.isEmpty() || !s.lines.waiting.isEmpty() {
		// In a frame of their own: within one, settles are handled first, and end the lease.
		return &joblinev1.StreamRequest{Extends: s.reports.take(), Logs: s.lines.take()}
	}
	frame := &joblinev1.StreamRequest{}
	isDue := false
	if len(s.resent) > 0 {
		frame.Settles, s.resent, isDue = s.resent[:1:1], s.resent[1:], true
	} else if settle := s.settles.take(); settle != nil {
		frame.Settles, isDue = []*joblinev1.StreamSettle{settle}, true
	}
	if !s.isDraining && (s.windowSent == nil || s.windowDue() != *s.windowSent) {
		s.putWindow(frame)
		isDue = true
	}
	if !isDue {
		return nil
	}
	return frame
}
