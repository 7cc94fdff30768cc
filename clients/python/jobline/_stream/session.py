"""`Session`: the worker's side of the stream, as a state machine. Pure: no socket, no clock.

A session outlives its streams. It returns the frames to send (`open` first, then settles, reports,
window, drain, and a heartbeat after a silence), handles the frames of the server, and keeps what
must survive a broken connection: the held leases and the unconfirmed settles. The caller moves
messages between it and a call, passes the time in, and calls again at `next_deadline`.

It knows nothing of handlers: which jobs run, and when, is decided by the worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

from jobline._enums import LeaseReason, RevokeReason, known
from jobline._job_log import LogLevel
from jobline._leased import LeasedJob
from jobline._stream.asked_window import AskedWindow
from jobline._stream.draining import Draining
from jobline._stream.frames import Goaway, LostLease, Received, goaway_of, interrupted_release
from jobline._stream.heartbeat import Heartbeat
from jobline._stream.log_lines import LogLines
from jobline._stream.reports import Report, Reports
from jobline._stream.settles import Settles
from jobline._stream.wrong_frames import refuse_wrong
from jobline.v1 import job_service_pb2 as pb


class Session:
    """The state of one worker towards one server, over all its streams."""

    def __init__(self, opening: pb.StreamOpen, *, window: int, window_bytes: int) -> None:
        self._opening = opening
        self._settles = Settles()
        self._reports = Reports()
        self._log_lines = LogLines()
        self._resent: list[pb.StreamSettle] = []
        self._window = AskedWindow(window, window_bytes)
        self._settled_before: dict[int, int] = {}
        self.held: dict[int, int] = {}  # id → delivery of the leases that are not settled
        self.session = ""
        self.goaway: Goaway | None = None
        self._drain = Draining()

        # State of the current stream, if there is one.
        self._has_stream = False
        self.is_open = False  # and the server has answered on it
        self._must_open = False
        self._heartbeat = Heartbeat()

    # -------------------------------------------------------------------- the life of a stream

    def connect(self, now: float) -> None:
        """Begins a stream: `frames_to_send` returns its first frame."""
        self._has_stream = True
        self.is_open = False
        self.goaway = None
        self._must_open = True
        self._window.repeat()
        self._drain.connect()
        self._resent = []
        self._heartbeat.connect(now)

    def disconnect(self) -> None:
        """Ends the stream. Leases and settles are kept for the next one."""
        self._has_stream = False
        self.is_open = False
        self._must_open = False

    def handle_taken(self) -> None:
        """Starts a new session with the next stream: another stream has taken this one."""
        self.session = ""

    def handle_refusal(self) -> None:
        """Drops all unconfirmed settles and reports: the server refused one of them. The next
        stream finds leases that are unknown here, and releases them.
        """
        self._settles = Settles()
        self._reports.forget_waiting()
        self._log_lines.clear()

    def handle_frame(self, now: float, frame: pb.StreamResponse) -> Received:
        """Handles a frame of the server; call `frames_to_send` next. Raises Internal for a wrong
        one, as for far more jobs than were asked for: nothing of the frame counts then.
        """
        refuse_wrong(frame, is_open=self.is_open)
        self._window.refuse_surplus(frame, len(self.held), self._settles.jobs)
        received = Received()
        self._heartbeat.frame_received(now)
        if frame.HasField("opened"):
            self._handle_opened(now, frame.opened, received)
        for confirm in frame.confirms:
            received.reports.extend(self._settles.handle_confirm(confirm))
        if self._settled_before and not self._settles.has_unconfirmed:
            self._settled_before = {}
        for run in frame.runs:
            self._take_jobs(LeasedJob.from_run(run), run.lease_ms, received)
        if frame.jobs:
            jobs = [LeasedJob.from_message(message) for message in frame.jobs]
            self._take_jobs(jobs, min([job.lease_ms for job in jobs]), received)
        # After the jobs: a job may be leased and revoked before its frame is sent. An
        # older lease that is taken back beside a newer one has been ended by the newer one by now.
        for revoke in frame.revokes:
            self._handle_revoke(revoke, received)
        received.unhandled = [(one.queue, one.name, one.ready) for one in frame.unhandled]
        if frame.HasField("goaway"):
            self.goaway = received.goaway = goaway_of(frame.goaway)
        return received

    def _handle_opened(self, now: float, opened: pb.StreamOpened, received: Received) -> None:
        received.opened, received.resumed = True, opened.resumed
        self.session = opened.session
        self.is_open = True
        self._heartbeat.opened(now, opened.heartbeat_interval.ToNanoseconds() / 1e9)
        self._resent = self._settles.resend()
        self._settled_before = self._settles.unconfirmed_leases()
        held = dict(zip(opened.held_ids, opened.held_deliveries, strict=True))
        for id_, delivery in list(self.held.items()):
            if held.get(id_) != delivery:
                self._lose(id_, delivery, RevokeReason.LEASE_LOST, received)
        for id_, delivery in held.items():
            if self.held.get(id_) != delivery and self._settled_before.get(id_) != delivery:
                # Leased in a frame that never arrived. It must be released here: every frame of
                # this stream keeps it leased.
                self._settles.add(interrupted_release(id_, delivery))
        self._reports.repeat_checkpoints()

    def _handle_revoke(self, revoke: pb.StreamRevoke, received: Received) -> None:
        reason = known(RevokeReason, revoke.reason)
        if self.held.get(revoke.id) != revoke.delivery:
            return  # settled meanwhile, or a lease that is lost already
        if reason is RevokeReason.CANCELLED:
            received.lost.append(LostLease(revoke.id, revoke.delivery, reason))
        else:
            self._lose(revoke.id, revoke.delivery, reason, received)

    def _take_jobs(self, jobs: list[LeasedJob], lease_ms_min: int, received: Received) -> None:
        leases = {job.id: job.delivery for job in jobs}
        self._heartbeat.leased(lease_ms_min, holds_others=bool(self.held))
        if not self.held.keys().isdisjoint(leases) or self._settled_before:
            jobs = [job for job in jobs if self._is_new(job, received)]
        self.held.update(leases)
        received.jobs.extend(jobs)

    def _is_new(self, job: LeasedJob, received: Received) -> bool:
        """Returns whether to run a leased job: not one whose lease runs already. A newer lease ends
        an older one.
        """
        if job.reason is LeaseReason.RESUMED and self._settled_before.get(job.id) == job.delivery:
            return False
        known_delivery = self.held.get(job.id)
        if known_delivery == job.delivery:
            return False
        if known_delivery is not None:
            self._lose(job.id, known_delivery, RevokeReason.LEASE_LOST, received)
        return True

    def _lose(self, id_: int, delivery: int, reason: RevokeReason, received: Received) -> None:
        del self.held[id_]
        self._reports.lose(id_)
        self._log_lines.forget(id_, delivery)
        received.lost.append(LostLease(id_, delivery, reason))

    # -------------------------------------------------------------------- from the worker

    def ack(self, id_: int, delivery: int, result: bytes | None = None) -> bool:
        """Settles a job as done. Returns False if its lease was lost meanwhile; nothing is sent
        then.
        """
        if self.held.get(id_) != delivery:
            return False
        del self.held[id_]
        self._reports.forget(id_)
        self._settles.ack(id_, delivery, result)
        return True

    def settle(self, item: pb.FailItem | pb.ReleaseItem) -> bool:
        """Settles a job as failed or released. Returns False if its lease was lost meanwhile."""
        if self.held.get(item.id) != item.delivery:
            return False
        del self.held[item.id]
        self._reports.keep_until_sent(item.id)
        self._settles.add(item)
        return True

    def leave(self, id_: int, delivery: int) -> None:
        """Drops a lease without a settle: the server ends it when the stream has ended."""
        if self.held.get(id_) == delivery:
            del self.held[id_]
            self._reports.forget(id_)
            self._window.repeat()  # any frame has the server look for other jobs

    def fence(self, passed: Callable[[], object]) -> None:
        """Calls `passed` when the server has handled all reports so far."""
        self._settles.fence(passed)

    def report(self, id_: int, delivery: int, **report: Unpack[Report]) -> bool:
        """Reports progress of a job; replaces what was not sent yet. Returns False if its lease was
        lost.
        """
        if self.held.get(id_) != delivery:
            return False
        self._reports.add(id_, delivery, **report)
        return True

    def finish_phase(self, id_: int, delivery: int, name: str, result: bytes) -> bool:
        """Finishes a phase of a job. Returns False if its lease was lost."""
        if self.held.get(id_) != delivery:
            return False
        self._reports.finish_phase(id_, delivery, name, result)
        return True

    def log(self, id_: int, delivery: int, at_ms: int, level: LogLevel, text: str) -> bool:
        """Adds a line to the log of a job. Returns False if its lease was lost."""
        if self.held.get(id_) != delivery:
            return False
        self._log_lines.add(id_, delivery, at_ms, level, text)
        return True

    def set_window(self, window: int, window_bytes: int) -> None:
        """Sets how much may be unfinished here at any time; 0 jobs pauses."""
        self._window.set(window, window_bytes)

    def drain(self) -> None:
        """Asks for no more jobs. Settle what is held, and what still comes."""
        self._drain.is_wanted = True

    @property
    def draining(self) -> bool:
        """Whether no more jobs are asked for."""
        return self._drain.is_wanted

    @property
    def may_half_close(self) -> bool:
        """Whether the drain is confirmed: nothing is on its way here, and all settles were sent."""
        unsent = self._resent or self._reports or self._log_lines or self._settles.has_waiting
        return self._drain.is_confirmed and not self.held and not unsent

    @property
    def is_confirmed(self) -> bool:
        """Whether nothing is held and the server has confirmed every settle."""
        return not (self.held or self._settles.has_waiting or self._settles.has_unconfirmed)

    # -------------------------------------------------------------------- what goes out, and when

    def frames_to_send(self, now: float) -> list[pb.StreamRequest]:
        """Returns the frames that are due now, in order."""
        if self._must_open:
            self._must_open = False
            self._heartbeat.frame_sent(now)
            return [self._open_frame()]
        if not self.is_open:
            return []
        frames = []
        while (frame := self._next_frame()) is not None:
            frames.append(frame)
        if not frames and now >= self.next_deadline():
            frames.append(pb.StreamRequest())
        if frames:
            self._heartbeat.frame_sent(now)
        return frames

    def next_deadline(self) -> float:
        """Returns when to call `frames_to_send` again, if nothing happens before."""
        return (
            self._heartbeat.next_frame(holds_leases=bool(self.held)) if self.is_open else math.inf
        )

    def next_silence_check(self) -> float:
        """Returns when to call `is_silent` again."""
        return self._heartbeat.next_silence_check() if self._has_stream else math.inf

    def is_silent(self, now: float) -> bool:
        """Returns whether the server was silent for too long: end the stream and open another."""
        return self._heartbeat.is_silent(now) and self._has_stream

    def _open_frame(self) -> pb.StreamRequest:
        frame = pb.StreamRequest(open=self._opening)
        if self.session:
            frame.open.session = self.session
        self._window.put(frame, self._settles.jobs)
        return frame

    def _next_frame(self) -> pb.StreamRequest | None:
        """Returns one frame with as much as it may carry; None if nothing is due."""
        frame = pb.StreamRequest()
        if self._reports or self._log_lines:
            # In a frame of their own: within one, settles are handled first, and end the lease.
            frame.extends.extend(self._reports.take())
            frame.logs.extend(self._log_lines.take())
            return frame
        self._drain.ask(self._settles)
        settle = self._resent.pop(0) if self._resent else self._settles.take()
        if settle is not None:
            frame.settles.append(settle)
        self._window.put(frame, self._settles.jobs)
        self._drain.put(frame)
        return frame if frame.ListFields() else None
