"""The desk: one session, shared by the threads of a worker.

Runners leave their outcomes here without waiting: an outcome is put on a deque, and the bell is
rung. The thread that writes takes all that lies there into the session at once, which is how
settles are gathered. All else (frames, reports, the window) goes through one lock, held for
microseconds and never while anybody waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Container
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from jobline._enums import SettleOutcome
from jobline._frames import Received, interrupted_row
from jobline._leased import LeasedJob
from jobline._session import Session
from jobline._settles import SettleKind, SettleReport
from jobline._worker.log import job_died
from jobline._worker.window import Window
from jobline.v1 import job_service_pb2 as pb

# Seconds between looks at a window that moves.
MEASURE_EVERY = 0.1

_Row = pb.FailItem | pb.ReleaseItem


@dataclass(slots=True)
class Counts:
    """What a worker has done since it started."""

    done: int = 0
    failed: int = 0
    released: int = 0
    lost: int = 0


class Bell:
    """Wakes one thread; rung many times before it wakes, it wakes it once."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()
        self._is_rung = False

    def ring(self) -> None:
        """Wakes the thread, now or at its next wait."""
        if not self._is_rung:
            self._is_rung = True
            self._queue.put(None)

    def wait(self, timeout: float) -> None:
        """Waits for the bell, at most `timeout` seconds."""
        try:
            self._queue.get(timeout=max(0.0, timeout))
        except Empty:
            return
        # Before the caller looks for work: what is left from now on rings again.
        self._is_rung = False


class Desk:
    """Where runners, reader, writer and keeper meet."""

    def __init__(self, session: Session, window: Window, window_bytes: int) -> None:
        self._session = session
        self._window = window
        self._window_bytes = window_bytes
        self._lock = threading.Lock()
        self._acks: deque[tuple[int, int, bytes | None]] = deque()
        self._rows: deque[_Row] = deque()
        self._finished = 0
        self.counts = Counts()
        self.bell = Bell()

    # ------------------------------------------------------------------ from runners

    def holds(self, job: LeasedJob) -> bool:
        """The lease is still ours and not settled."""
        return self._session.held.get(job.id) == job.delivery

    def ack(self, job: LeasedJob, result: bytes | None = None) -> None:
        """The job is done."""
        self._acks.append((job.id, job.delivery, result))
        self.bell.ring()

    def settle(self, row: _Row) -> None:
        """The job failed, or is given back."""
        self._rows.append(row)
        self.bell.ring()

    def settle_now(self, row: _Row) -> None:
        """A job is settled for good, whatever its handler may still say."""
        with self._lock:
            self._take_row(row)
        self.bell.ring()

    def report(
        self,
        job: LeasedJob,
        *,
        progress: float | None = None,
        message: str | None = None,
        checkpoint: bytes | None = None,
    ) -> bool:
        """What a handler says of its job while it works; false if the lease is lost."""
        with self._lock:
            is_held = self._session.report(
                job.id, job.delivery, progress=progress, message=message, checkpoint=checkpoint
            )
        self.bell.ring()
        return is_held

    # ------------------------------------------------------------------ from the stream's threads

    def connect(self) -> Bell:
        """A stream begins. Its writer waits for the bell, and takes frames with it: the writer of
        an earlier stream, which may not have noticed its end yet, gets none.
        """
        with self._lock:
            self.bell = Bell()
            self._session.connect(time.monotonic())
            return self.bell

    def disconnect(self) -> None:
        """The stream has ended."""
        with self._lock:
            self._session.disconnect()

    def handle_refusal(self) -> None:
        """The server ended the stream because of something that was said on it."""
        with self._lock:
            self._session.handle_refusal()

    def handle_taken(self) -> None:
        """The session is another stream's now."""
        with self._lock:
            self._session.handle_taken()

    def handle_frame(self, frame: pb.StreamResponse) -> Received:
        """Takes a frame of the server, and says what it brought."""
        now = time.monotonic()
        with self._lock:
            # What was settled before this frame arrived must not look as if it were still held.
            self._take_outcomes()
            received = self._session.handle_frame(now, frame)
            self._measure(now)
        for report in received.reports:
            self._count_report(report)
        # Confirms make room for the next settles, and `opened` for the first ones.
        self.bell.ring()
        return received

    def frames_to_send(self, bell: Bell) -> tuple[list[pb.StreamRequest], float | None]:
        """What is due, and seconds until more is due; None: the stream may be half-closed."""
        now = time.monotonic()
        with self._lock:
            if bell is not self.bell:
                return [], None
            self._take_outcomes()
            self._measure(now)
            frames = self._session.frames_to_send(now)
            if self._session.may_half_close:
                return frames, None
            return frames, self._session.next_deadline() - now

    def _take_outcomes(self) -> None:
        """Moves what runners left into the session. Reports were put there before their job's
        outcome.
        """
        session, counts = self._session, self.counts
        acks, rows = self._acks, self._rows
        while acks:
            self._finished += 1
            if session.ack(*acks.popleft()):
                counts.done += 1
            else:
                counts.lost += 1
        while rows:
            self._take_row(rows.popleft())

    def _take_row(self, row: _Row) -> None:
        self._finished += 1
        if not self._session.settle(row):
            self.counts.lost += 1
        elif isinstance(row, pb.FailItem):
            self.counts.failed += 1
        else:
            self.counts.released += 1

    def _count_report(self, report: SettleReport) -> None:
        """A settle that came too late was counted as done, and was not."""
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

    # ------------------------------------------------------------------ from the keeper

    def look(self) -> tuple[bool, float]:
        """Whether the server has fallen silent, and seconds until it is worth looking again."""
        now = time.monotonic()
        with self._lock:
            self._measure(now)
            is_silent = self._session.is_silent(now)
            pause = self._session.next_look() - now
        return is_silent, pause if self._window.is_at_rest else min(pause, MEASURE_EVERY)

    def drain(self) -> None:
        """No more jobs are wanted."""
        with self._lock:
            self._session.drain()
        self.bell.ring()

    def release_held(self, keep: Container[tuple[int, int]] = ()) -> list[tuple[int, int]]:
        """Gives back all leases that are held, but for those to `keep`; returns which."""
        with self._lock:
            self._take_outcomes()
            leases = [lease for lease in self._session.held.items() if lease not in keep]
            for id_, delivery in leases:
                self._session.settle(interrupted_row(id_, delivery))
            self.counts.released += len(leases)
        self.bell.ring()
        return leases

    @property
    def held(self) -> int:
        """How many leases are held and not settled."""
        return len(self._session.held)

    @property
    def finished(self) -> int:
        """How many jobs are done with, one way or another, since the start."""
        return self._finished

    @property
    def is_confirmed(self) -> bool:
        """Nothing is held, and the server knows all that was settled."""
        with self._lock:
            self._take_outcomes()
            return self._session.is_confirmed

    @property
    def is_over(self) -> bool:
        """No more jobs are wanted, and there is nothing left to say."""
        return self._session.draining and self.is_confirmed

    @property
    def is_open(self) -> bool:
        """There is a stream, and the server has answered on it."""
        return self._session.is_open
