"""`SharedSession`: one session, shared by the threads of a worker.

Runners never wait here: they append outcomes to a deque. The writer moves all of them into the
session at once. Everything else goes through one lock that is held for microseconds.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Container
from typing import Any, Unpack, cast

from jobline._enums import SettleOutcome
from jobline._job_log import LogLevel
from jobline._leased import LeasedJob
from jobline._stream.frames import Received, interrupted_release
from jobline._stream.reports import Report
from jobline._stream.session import Session
from jobline._stream.settles import SettleKind, SettleReport
from jobline._worker.log import job_died
from jobline._worker.once import Once, is_once
from jobline._worker.tallies import Counts, Tallies, outcome_of
from jobline._worker.wakeup import Wakeup
from jobline._worker.window import Window
from jobline.codec import Codec
from jobline.v1 import job_service_pb2 as pb

# Seconds between measurements of a window that moves.
MEASURE_EVERY = 0.1

_Item = pb.FailItem | pb.ReleaseItem


class SharedSession:
    """The session of a worker, for its runners, reader, writer and supervisor."""

    def __init__(self, session: Session, window: Window, window_bytes: int) -> None:
        self._session = session
        self._window = window
        self._window_bytes = window_bytes
        self._lock = threading.Lock()
        self._is_draining = False
        self._acks: deque[tuple[int, int, bytes | None]] = deque()
        self._items: deque[_Item] = deque()
        self._finished = 0
        self.begun: set[tuple[int, int]] = set()
        """Jobs that may run only once and whose handlers have begun, as (id, delivery)."""
        self._once = Once()
        self.counts = Counts()
        self.tallies = Tallies()
        self.codec: Codec | None = None
        self.down_since: float | None = time.monotonic()  # None while there is a stream
        self.wakeup = Wakeup()

    # ------------------------------------------------------------------ from runners

    def begin(self, job: LeasedJob) -> bool:
        """Returns whether the lease of a job is held, just before its handler begins. The job
        counts as running already: a drain that begins meanwhile sees it.
        """
        is_other = job.options_message is not self._once.repeatable
        if self._is_draining or (is_other and self._once.is_once(job)):
            with self._lock:
                is_held = self.holds(job)
                if is_held and is_once(job):
                    self.begun.add((job.id, job.delivery))
            return is_held
        return self._session.held.get(job.id) == job.delivery

    def holds(self, job: LeasedJob) -> bool:
        """Returns whether the lease of a job is held and not settled."""
        return self._session.held.get(job.id) == job.delivery

    def ack(self, job: LeasedJob, result: bytes | None = None, content_type: str = "") -> None:
        """Settles a job as done. Raises CodecError if its result cannot be sealed."""
        if result and self.codec is not None:
            result = self.codec.sealed_result(job, result, content_type)
        self._acks.append((job.id, job.delivery, result))
        self.wakeup.set()

    def settle(self, item: _Item) -> None:
        """Settles a job as failed or released."""
        self._items.append(item)
        self.wakeup.set()

    def settle_now(self, item: _Item) -> None:
        """Settles a job at once; what its handler returns later is dropped."""
        with self._lock:
            self._take_item(item)
        self.wakeup.set()

    def fence(self, passed: Callable[[], object]) -> None:
        """Calls `passed`, on the reader's thread, when the server has handled all reports so far.
        It never does if the server refuses a report.
        """
        with self._lock:
            self._session.fence(passed)
        self.wakeup.set()

    def hand_over(self, job: LeasedJob, *, is_lost: bool = False) -> None:
        """Drops a lease that was ended by another call, or found to be lost by it."""
        with self._lock:
            self._session.leave(job.id, job.delivery)
            self._finished += 1
            self.counts.lost += is_lost
            self.counts.released += not is_lost
            if not is_lost:
                self.tallies.settled("released")
        self.wakeup.set()

    def report(self, job: LeasedJob, **report: Unpack[Report]) -> bool:
        """Reports progress of a job; returns False if its lease is lost."""
        if self.codec is not None:
            self.codec.seal_report(job, cast(dict[str, Any], report))
        with self._lock:
            is_held = self._session.report(job.id, job.delivery, **report)
        self.wakeup.set()
        return is_held

    def finish_phase(self, job: LeasedJob, name: str, result: bytes) -> bool:
        """Finishes a phase of a job; returns False if its lease is lost."""
        if result and self.codec is not None:
            result = self.codec.sealed_result(job, result, "")
        with self._lock:
            is_held = self._session.finish_phase(job.id, job.delivery, name, result)
        self.wakeup.set()
        return is_held

    def log(self, job: LeasedJob, level: LogLevel, text: str) -> bool:
        """Adds a line to the log of a job; returns False if its lease is lost."""
        at_ms = time.time_ns() // 1_000_000
        with self._lock:
            is_held = self._session.log(job.id, job.delivery, at_ms, level, text)
        self.wakeup.set()
        return is_held

    # ------------------------------------------------------------------ from the stream's threads

    def connect(self) -> Wakeup:
        """Begins a stream and returns the wake-up of its writer, by which `frames_to_send` knows
        it: that of an earlier stream gets no frames.
        """
        with self._lock:
            self.wakeup = Wakeup()
            self._session.connect(time.monotonic())
            return self.wakeup

    def disconnect(self) -> None:
        """Ends the stream; leases and settles are kept for the next one."""
        with self._lock:
            self._session.disconnect()
            if self.down_since is None:
                self.down_since = time.monotonic()

    def handle_refusal(self) -> None:
        """Drops what was not confirmed, because the server refused some of it."""
        with self._lock:
            self._session.handle_refusal()

    def handle_taken(self) -> None:
        """Starts a new session with the next stream: another one has taken this session."""
        with self._lock:
            self._session.handle_taken()

    def handle_frame(self, frame: pb.StreamResponse) -> Received:
        """Handles a frame and returns what it brought. Raises Internal for a wrong one."""
        now = time.monotonic()
        with self._lock:
            # What was settled before this frame arrived must not count as held.
            self._take_outcomes()
            received = self._session.handle_frame(now, frame)
            if received.opened:
                self.down_since = None
                self.counts.opened += 1
            self._measure(now)
        for report in received.reports:
            self._count_report(report)
        # Confirms make room for the next settles, and `opened` for the first ones.
        self.wakeup.set()
        return received

    def frames_to_send(self, wakeup: Wakeup) -> tuple[list[pb.StreamRequest], float | None]:
        """Returns the frames that are due and the seconds until the next; None: half-close."""
        now = time.monotonic()
        with self._lock:
            if wakeup is not self.wakeup:
                return [], None
            self._take_outcomes()
            self._measure(now)
            frames = self._session.frames_to_send(now)
            if self._session.may_half_close:
                return frames, None
            return frames, self._session.next_deadline() - now

    def _take_outcomes(self) -> None:
        """Moves the outcomes of runners into the session. A job's reports are there already."""
        session, counts = self._session, self.counts
        acks, items = self._acks, self._items
        before = counts.done
        while acks:
            self._finished += 1
            if session.ack(*acks.popleft()):
                counts.done += 1
            else:
                counts.lost += 1
        if counts.done != before:
            self.tallies.settled("completed", counts.done - before)
        while items:
            self._take_item(items.popleft())

    def _take_item(self, item: _Item) -> None:
        self._finished += 1
        if not self._session.settle(item):
            self.counts.lost += 1
            return
        self.tallies.settled(outcome_of(item))
        if isinstance(item, pb.FailItem):
            self.counts.failed += 1
        else:
            self.counts.released += 1

    def _count_report(self, report: SettleReport) -> None:
        """Corrects the counts for a settle that came too late."""
        if report.is_dead:
            job_died(report.id, report.error)
        if report.outcome not in {SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND}:
            return
        self.counts.lost += 1
        if report.kind is SettleKind.ACK:
            self.counts.done -= 1

    def _measure(self, now: float) -> None:
        if self._window.measure(now, self._finished):
            self._session.set_window(self._window.size, self._window_bytes)

    # ------------------------------------------------------------------ from the supervisor

    def check_silence(self) -> tuple[bool, float]:
        """Returns whether the server has been silent for too long, and when to check again."""
        now = time.monotonic()
        with self._lock:
            self._measure(now)
            is_silent = self._session.is_silent(now)
            pause = self._session.next_silence_check() - now
        return is_silent, pause if self._window.is_at_rest else min(pause, MEASURE_EVERY)

    def drain(self) -> None:
        """Asks the server for no more jobs."""
        self._is_draining = True  # before anybody looks at what runs
        with self._lock:
            self._session.drain()
        self.wakeup.set()

    def release_held(self, keep: Container[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """Releases all held leases except those to `keep`, and returns them. Jobs that may run only
        once and have begun are not released, but left to the server, which ends them.
        """
        with self._lock:
            self._take_outcomes()
            held = [lease for lease in self._session.held.items() if lease not in keep]
            for lease in self.begun.intersection(held):
                self._session.leave(*lease)
            leases = [lease for lease in held if lease not in self.begun]
            for id_, delivery in leases:
                self._session.settle(interrupted_release(id_, delivery))
            self.counts.released += len(leases)
            self.tallies.settled("released", len(leases))
        self.wakeup.set()
        return leases

    @property
    def held(self) -> int:
        """Number of leases that are held and not settled."""
        return len(self._session.held)

    @property
    def finished(self) -> int:
        """Number of jobs that were settled since the start, whatever their outcome."""
        return self._finished

    @property
    def is_confirmed(self) -> bool:
        """Whether nothing is held and the server has confirmed every settle."""
        with self._lock:
            self._take_outcomes()
            return self._session.is_confirmed

    @property
    def is_over(self) -> bool:
        """Whether the session drains and everything is confirmed."""
        return self._session.draining and self.is_confirmed

    @property
    def is_open(self) -> bool:
        """Whether the server has replied on the current stream."""
        return self._session.is_open
