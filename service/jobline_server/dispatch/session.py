"""A worker stream as a protocol, without a stream.

    worker ── open ──▶ OPEN ── drain / goaway ──▶ DRAINING ── half-close, nothing held ──▶ ENDED
           ── window, settle, extend ──▶    ◀── deliver, confirm, revoke, heartbeat ──

The server hands out at most the window. `in_flight` counts the worker's unfinished jobs; the engine
updates it as jobs are leased and settled, so the credit is the window minus `in_flight`. Jobs that
are not yet written to the worker count even if another call settles them first: a worker that does
not read is sent no more.

Call `handle_<frame>` for each frame that comes in. What is to be sent gathers until
`frame_to_send`; call it again at `next_deadline`. A session decides nothing about jobs: the runtime
asks the engine and passes on the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from jobline_server.dispatch.frames import Confirm, Goaway, Open, Opened, ServerFrame, Window
from jobline_server.engine.commands import Leased, NotDone, RefusalKind, Refused
from jobline_server.engine.holder import InFlight
from jobline_server.engine.values import Now, RevokeReason

# After this many heartbeat intervals without a frame, a side treats the stream as dead.
SILENT_INTERVALS = 3


class Phase(Enum):
    """The phases of a stream."""

    OPEN = "open"
    DRAINING = "draining"
    ENDED = "ended"


class Session:
    """The server's side of one worker stream."""

    def __init__(self, opened: Open, session_id: str, now: Now, *, heartbeat_ms: int) -> None:
        self.open = opened
        self.session_id = session_id
        self.heartbeat_ms = heartbeat_ms
        self.phase = Phase.OPEN
        self.in_flight = InFlight()
        self.window = Window(jobs=0)
        self.connected_ms = now.wall_ms
        self.opened_ms = now.mono_ms
        self._close_ms: int | None = None
        self.last_seen_ms = now.mono_ms
        self.last_seen_wall_ms = now.wall_ms
        self.half_closed = False
        self.is_resuming = False
        """Whether its held leases are being listed; it gets no new job meanwhile."""
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
        """Records that the worker is alive; call it for every frame."""
        self.last_seen_ms = now.mono_ms
        self.last_seen_wall_ms = now.wall_ms
        self._is_missed = False
        if self.half_closed:
            raise Refused(RefusalKind.PROTOCOL_MISTAKE, "a frame after the half-close")

    def handle_open(self) -> None:
        """Refuses a second `open`: the caller has taken the first."""
        raise Refused(RefusalKind.PROTOCOL_MISTAKE, "belongs to the first frame only", field="open")

    def handle_window(self, window: Window) -> None:
        """Sets the window."""
        self.window = window

    def handle_drain(self) -> None:
        """Stops deliveries: the worker will only finish the jobs it has."""
        if self.phase is Phase.OPEN:
            self.phase = Phase.DRAINING

    def handle_settle(self) -> None:
        """Counts a settle; the stream does not end before `confirm` replies to it."""
        self._unconfirmed += 1

    def handle_lost_lease(self, now: Now, lease_ms: int) -> None:
        """Stops deliveries until the next frame, after a lease expired, if no frame came for
        `lease_ms`, the worker's shortest lease: if the connection is dead, more jobs would stall.
        """
        self._is_missed |= now.mono_ms >= self.last_seen_ms + lease_ms

    def handle_half_close(self) -> None:
        """Stops deliveries, as the worker sends no more frames; the stream ends after the last
        confirm.
        """
        self.half_closed = True
        self.handle_drain()

    # To the worker.

    def opened(self, held_ids: list[int], held_deliveries: list[int]) -> None:
        """Replies to `open`."""
        resumed, self.is_resuming = bool(held_ids), False
        self._out.opened = Opened(
            self.session_id, self.heartbeat_ms, resumed, held_ids, held_deliveries
        )
        self._has_out = True

    def deliver(self, leased: Leased) -> None:
        """Sends jobs that were leased to this worker."""
        self._out.leased.append(leased)
        self._unread.jobs += leased.count()
        self._unread.payload_bytes += leased.payload_bytes()
        self._has_out = True

    def take_unsent(self) -> list[Leased]:
        """Removes and returns the leases that are in no frame yet."""
        unsent, self._out.leased = self._out.leased, []
        return unsent

    def confirm(self, seq: int, exceptions: NotDone, dead: Sequence[int] = ()) -> None:
        """Replies to a settle after its commit; the fails at the indexes `dead` made their jobs
        DEAD. A settle numbered 0 gets no reply.
        """
        self._unconfirmed -= 1
        if seq:
            self._out.confirms.append(Confirm(seq, exceptions, dead))
            self.unsent += entries_of(exceptions, dead)
            self._has_out = True

    def revoke(self, job_id: int, delivery: int, reason: RevokeReason) -> None:
        """Asks the worker to stop working on a job."""
        self._out.revokes.append((job_id, delivery, reason))
        self.unsent += 1
        self._has_out = True

    def notify_unhandled(self, queue: str, names: Mapping[str, int]) -> None:
        """Notifies the worker of names in a queue that no connected worker handles, with counts."""
        self._out.unhandled.update({(queue, name): ready for name, ready in names.items()})
        self._has_out = True

    def goaway(self, goaway: Goaway, now: Now) -> None:
        """Asks the worker to open another stream. It gets no more jobs here; this stream ends at
        `goaway.close_ms`, or earlier if a goaway before said so.
        """
        # Kept in monotonic time: the wall clock may be set meanwhile.
        close_ms = now.mono_ms + max(goaway.close_ms - now.wall_ms, 0)
        if self._close_ms is None or close_ms < self._close_ms:
            self._close_ms = close_ms
        self._out.goaway = goaway
        self._has_out = True
        if self.phase is Phase.OPEN:
            self.phase = Phase.DRAINING

    # What follows.

    def room(self) -> tuple[int, int]:
        """Returns how many places for jobs, and payload bytes, are free now; an empty window always
        takes one job.
        """
        if self.phase is not Phase.OPEN or self._is_missed or self.is_resuming:
            return 0, 0
        window, in_flight = self.window, self.in_flight
        jobs, payload_bytes = in_flight.jobs + in_flight.extra_slots, in_flight.payload_bytes
        if self._is_behind():
            jobs = max(jobs, self._unread.jobs)
            payload_bytes = max(payload_bytes, self._unread.payload_bytes)
            if payload_bytes >= window.payload_bytes:
                return 0, 0
        return max(window.jobs - jobs, 0), max(window.payload_bytes - payload_bytes, 0)

    def handle_written(self) -> bool:
        """Records that the last frame was written; returns whether that makes room."""
        jobs, payload_bytes = self._in_frame
        if not jobs:
            return False
        makes_room = self._is_behind()
        self._in_frame = (0, 0)
        self._unread.jobs -= jobs
        self._unread.payload_bytes -= payload_bytes
        return makes_room

    def _is_behind(self) -> bool:
        """Returns whether the worker's jobs were settled before it can have read them."""
        unread, in_flight = self._unread, self.in_flight
        return unread.jobs > in_flight.jobs or unread.payload_bytes > in_flight.payload_bytes

    def names_for(self, queue: str) -> frozenset[str] | None:
        """Returns the names it handles in a queue; None: any."""
        return None if self._names is None else self._names.get(queue, frozenset())

    def is_over(self) -> bool:
        """Returns whether the worker has half-closed and every settle is confirmed and sent."""
        return self.half_closed and not self._unconfirmed and not self._has_out

    def frame_to_send(self, now: Now) -> ServerFrame | None:
        """Returns one frame with everything to send, or a heartbeat that is due, or None."""
        if not self._has_out and now.mono_ms < self._sent_ms + self.heartbeat_ms:
            return None
        frame, self._out, self._has_out = self._out, ServerFrame(), False
        self.unsent = 0
        self._in_frame = (self._unread.jobs, self._unread.payload_bytes)
        self._sent_ms = now.mono_ms
        return frame

    def next_deadline(self) -> int:
        """Returns when to check again, in monotonic milliseconds: for a heartbeat, a silent worker,
        or the end that a goaway set.
        """
        deadline = min(self._sent_ms + self.heartbeat_ms, self._silent_ms())
        return deadline if self._close_ms is None else min(deadline, self._close_ms)

    def handle_pause(self) -> None:
        """Has a heartbeat sent: call it when `next_deadline` came by the machine's clock. The clock
        of `now` may stand still, and the worker would take the silence for a dead stream.
        """
        self._has_out = True

    def is_time_up(self, now: Now) -> bool:
        """Returns whether the end that a goaway set has come."""
        return self._close_ms is not None and now.mono_ms >= self._close_ms

    def is_silent(self, now: Now) -> bool:
        """Returns whether the worker was silent for so long that the stream must be dead."""
        return now.mono_ms >= self._silent_ms()

    def _silent_ms(self) -> int:
        return self.last_seen_ms + SILENT_INTERVALS * self.heartbeat_ms


def entries_of(exceptions: NotDone, dead: Sequence[int]) -> int:
    """Returns the size of a reply to a settle: 1, and 1 for each outcome it names."""
    return 1 + len(exceptions) + len(dead)


def _names_by_queue(opened: Open) -> dict[str, frozenset[str] | None] | None:
    if not opened.handlers:
        return None
    names: dict[str, set[str]] = {}
    for handler in opened.handlers:
        names.setdefault(handler.queue, set()).add(handler.name)
    found: dict[str, frozenset[str] | None] = {
        queue: frozenset(of_queue) for queue, of_queue in names.items()
    }
    found.update({handler.queue: None for handler in opened.handlers if handler.any_name})
    return found
