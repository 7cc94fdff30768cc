"""A worker stream as a protocol, without a stream.

    worker ── open ──▶ OPEN ── drain / goaway ──▶ DRAINING ── half-close, nothing held ──▶ ENDED
           ── window, settle, extend ──▶    ◀── deliver, confirm, revoke, heartbeat ──

The server hands out at most the window: what the worker has unfinished is counted in `in_flight`,
which the engine keeps in step as jobs are leased and settled, so the credit is window minus tally
and nothing has to be counted twice. Only what the worker has not read counts until it was written,
even if it is settled meanwhile by another call: who does not read is sent no more.

What comes in goes through `handle_<frame>`; what goes out gathers until `frame_to_send`; call
again at `next_deadline`. It does not decide about jobs: the runtime asks the engine and tells the
session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from jobline_server.dispatch.frames import Confirm, Goaway, Open, Opened, ServerFrame, Window
from jobline_server.engine.commands import Leased, NotDone, RefusalKind, Refused
from jobline_server.engine.holder import InFlight
from jobline_server.engine.values import Now, RevokeReason

# A side that hears nothing for this many heartbeat intervals takes the stream for dead.
SILENT_INTERVALS = 3


class Phase(Enum):
    """Where a stream stands."""

    OPEN = "open"
    DRAINING = "draining"
    ENDED = "ended"


class Session:
    """One worker pool on one call."""

    def __init__(self, opened: Open, session: str, now: Now, *, heartbeat_ms: int) -> None:
        self.open = opened
        self.session_id = session
        self.heartbeat_ms = heartbeat_ms
        self.phase = Phase.OPEN
        self.in_flight = InFlight()
        self.window = Window(jobs=0)
        self.connected_ms = now.wall_ms
        self.opened_ms = now.mono_ms
        self._close_ms: int | None = None
        self.last_seen_ms = now.mono_ms
        self.heard_wall_ms = now.wall_ms
        self.half_closed = False
        self.is_resuming = False
        """Whether what it holds is being listed: it gets nothing that would be among it."""
        self._is_missed = False
        self._sent_ms = now.mono_ms
        self._out = ServerFrame()
        self._has_out = False
        # Confirms, their outcomes and revokes that are in no frame yet.
        self.unsent = 0
        # Jobs and payload bytes in no frame yet, and in the frame that is being written.
        self._unread = InFlight()
        self._in_frame = (0, 0)
        self._unconfirmed = 0
        self._names = _names_by_queue(opened)

    # From the worker.

    def handle_any(self, now: Now) -> None:
        """Every frame shows that the worker lives."""
        self.last_seen_ms = now.mono_ms
        self.heard_wall_ms = now.wall_ms
        self._is_missed = False
        if self.half_closed:
            raise Refused(RefusalKind.PROTOCOL_MISTAKE, "a frame after the half-close")

    def handle_open(self) -> None:
        """There is one open a stream, and the shell has taken it."""
        raise Refused(RefusalKind.PROTOCOL_MISTAKE, "belongs to the first frame only", field="open")

    def handle_window(self, window: Window) -> None:
        """The worker wants this much unfinished from now on."""
        self.window = window

    def handle_drain(self) -> None:
        """The worker wants no more jobs and will finish what it has."""
        if self.phase is Phase.OPEN:
            self.phase = Phase.DRAINING

    def handle_settle(self) -> None:
        """A settle came in; `confirm` answers it, which `half_close` waits for."""
        self._unconfirmed += 1

    def handle_lost_lease(self, now: Now, lease_ms: int) -> None:
        """The worker was silent for a whole lease; its shortest takes `lease_ms`. If it has not
        been heard since, it may be gone, with a connection that does not tell: until it is heard
        again it gets no job that would stall as well.
        """
        self._is_missed |= now.mono_ms >= self.last_seen_ms + lease_ms

    def handle_half_close(self) -> None:
        """The worker sends no more; the stream ends after the last confirm."""
        self.half_closed = True
        self.handle_drain()

    # To the worker.

    def opened(self, held_ids: list[int], held_deliveries: list[int]) -> None:
        """Answers `open`."""
        resumed, self.is_resuming = bool(held_ids), False
        self._out.opened = Opened(
            self.session_id, self.heartbeat_ms, resumed, held_ids, held_deliveries
        )
        self._has_out = True

    def deliver(self, leased: Leased) -> None:
        """Jobs were leased to this worker."""
        self._out.leased.append(leased)
        self._unread.jobs += leased.count()
        self._unread.payload_bytes += leased.payload_bytes()
        self._has_out = True

    def take_unsent(self) -> list[Leased]:
        """Hands over what was leased to this worker and is in no frame yet."""
        unsent, self._out.leased = self._out.leased, []
        return unsent

    def confirm(self, seq: int, exceptions: NotDone, dead: Sequence[int] = ()) -> None:
        """A settle is on disk; fails of the indexes `dead` made their jobs DEAD. Number 0 asked for
        no answer.
        """
        self._unconfirmed -= 1
        if seq:
            self._out.confirms.append(Confirm(seq, exceptions, dead))
            self.unsent += entries_of(exceptions, dead)
            self._has_out = True

    def revoke(self, job_id: int, delivery: int, reason: RevokeReason) -> None:
        """The worker should stop working on a job."""
        self._out.revokes.append((job_id, delivery, reason))
        self.unsent += 1
        self._has_out = True

    def tell_unhandled(self, queue: str, names: Mapping[str, int]) -> None:
        """Jobs of a queue wait, so many of each name, and no connected worker handles them."""
        self._out.unhandled.update({(queue, name): ready for name, ready in names.items()})
        self._has_out = True

    def goaway(self, goaway: Goaway, now: Now) -> None:
        """Asks the worker to move; it gets no more jobs here, and the stream ends at the time that
        it is told, or at an earlier one that it was told before. Until then the wall clock may be
        set: it does not matter.
        """
        close_ms = now.mono_ms + max(goaway.close_ms - now.wall_ms, 0)
        if self._close_ms is None or close_ms < self._close_ms:
            self._close_ms = close_ms
        self._out.goaway = goaway
        self._has_out = True
        if self.phase is Phase.OPEN:
            self.phase = Phase.DRAINING

    # What follows.

    def room(self) -> tuple[int, int]:
        """Jobs and payload bytes that may be handed out now; one job always fits an empty
        window.
        """
        if self.phase is not Phase.OPEN or self._is_missed or self.is_resuming:
            return 0, 0
        window, jobs, payload_bytes = self.window, self.in_flight.jobs, self.in_flight.payload_bytes
        if self._is_behind():
            jobs = max(jobs, self._unread.jobs)
            payload_bytes = max(payload_bytes, self._unread.payload_bytes)
            if payload_bytes >= window.payload_bytes:
                return 0, 0
        return max(window.jobs - jobs, 0), max(window.payload_bytes - payload_bytes, 0)

    def handle_written(self) -> bool:
        """The frame that was to be sent is written. Returns whether that makes room."""
        jobs, payload_bytes = self._in_frame
        if not jobs:
            return False
        makes_room = self._is_behind()
        self._in_frame = (0, 0)
        self._unread.jobs -= jobs
        self._unread.payload_bytes -= payload_bytes
        return makes_room

    def _is_behind(self) -> bool:
        """Whether the worker has settled more than it can have read."""
        unread, in_flight = self._unread, self.in_flight
        return unread.jobs > in_flight.jobs or unread.payload_bytes > in_flight.payload_bytes

    def names_for(self, queue: str) -> frozenset[str] | None:
        """The names it handles in a queue; None: any."""
        return None if self._names is None else self._names.get(queue, frozenset())

    def is_over(self) -> bool:
        """Whether all is said: the worker half-closed, and every settle is confirmed and sent."""
        return self.half_closed and not self._unconfirmed and not self._has_out

    def frame_to_send(self, now: Now) -> ServerFrame | None:
        """What is to be sent now, all of it in one frame; a heartbeat if it is time; else None."""
        if not self._has_out and now.mono_ms < self._sent_ms + self.heartbeat_ms:
            return None
        frame, self._out, self._has_out = self._out, ServerFrame(), False
        self.unsent = 0
        self._in_frame = (self._unread.jobs, self._unread.payload_bytes)
        self._sent_ms = now.mono_ms
        return frame

    def next_deadline(self) -> int:
        """When to look again, in monotonic milliseconds: for a heartbeat, a worker gone silent, or
        the end that it was told.
        """
        deadline = min(self._sent_ms + self.heartbeat_ms, self._silent_ms())
        return deadline if self._close_ms is None else min(deadline, self._close_ms)

    def is_time_up(self, now: Now) -> bool:
        """Whether the moment has come that the worker was told by a goaway."""
        return self._close_ms is not None and now.mono_ms >= self._close_ms

    def is_silent(self, now: Now) -> bool:
        """Whether the worker has said nothing for so long that the stream must be dead."""
        return now.mono_ms >= self._silent_ms()

    def _silent_ms(self) -> int:
        return self.last_seen_ms + SILENT_INTERVALS * self.heartbeat_ms


def entries_of(exceptions: NotDone, dead: Sequence[int]) -> int:
    """What the answer to a settle counts for: itself, and each outcome that it names."""
    return 1 + len(exceptions) + len(dead)


def _names_by_queue(opened: Open) -> dict[str, frozenset[str]] | None:
    if not opened.handlers:
        return None
    names: dict[str, set[str]] = {}
    for handler in opened.handlers:
        names.setdefault(handler.queue, set()).add(handler.name)
    return {queue: frozenset(of_queue) for queue, of_queue in names.items()}
