"""A worker stream: joins one worker session to the engine.

The call's task passes frames in and takes frames out. The session knows the protocol, the engine
knows the jobs; this module decides who is notified of what, and when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from jobline_server.dispatch.frames import Goaway, ServerFrame, WorkerFrame
from jobline_server.dispatch.session import Phase, Session
from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, Leased, RefusalKind, Refused
from jobline_server.engine.holder import Holder, InFlight, graces_in
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import RevokeReason, SettleOutcome
from jobline_server.runtime.calls.confirms import Confirms
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.calls.returns import Returns
from jobline_server.runtime.calls.settles import ITEMS_AT_ONCE
from jobline_server.runtime.calls.settling import Settling
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.held_back import HandOut, parts_of
from jobline_server.runtime.waiting import is_set_within

# What a worker may leave unread of what its frames are answered: confirms, outcomes and revokes,
# about 100 bytes of memory each. More of its frames are not read before that: a worker may send
# faster than it reads, or never read.
UNREAD_MAX = 20_000


class WorkerStream:
    """One open stream: the consumer of its session's jobs."""

    def __init__(
        self,
        core: Core,
        dispatcher: Dispatcher,
        settling: Settling,
        returns: Returns,
        session: Session,
        *,
        grace_ms: int,
        left: Callable[[WorkerStream, bool], None],
    ) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._settling = settling
        self._returns = returns
        self.session = session
        self.session_id = session.session_id
        self.holders: dict[int, Holder] = {}
        self.queues = session.open.queues
        self.version = session.open.worker.version
        self.lease_ms = session.open.lease_ms or 0
        self.payload_bytes_max = session.open.message_bytes_max - limits.JOB_EXTRA_BYTES
        self._grace_ms = grace_ms
        self._left = left
        self._wake = asyncio.Event()
        self._wake.set()
        self.held_back: list[HandOut] = []
        self._ended = False
        self._taken = False
        self._has_room = asyncio.Event()
        # Nothing here may hold the port itself: a stream that broke is to be gone at once, and not
        # when the garbage collector comes by.
        self._confirms = Confirms(core, settling, session, ready=self._wake.set)

    # As a consumer.

    @property
    def in_flight(self) -> InFlight:
        """Returns the counts of what its worker has unfinished."""
        return self.session.in_flight

    def room(self) -> tuple[int, int]:
        """Returns what is left of its window."""
        return self.session.room()

    def names_for(self, queue: str) -> frozenset[str] | None:
        """Returns the names it handles in a queue; None: any."""
        return self.session.names_for(queue)

    def holder_on(self, shard: Shard) -> Holder:
        """Returns the session's holder on a shard; all of them share the session's counts in
        flight.
        """
        holder = self.holders.get(shard.number)
        if holder is None:
            worker = self.session.open.worker
            shard.clocks.advance(self._core.now())
            holder = shard.clocks.holder_of(self.session.session_id, worker.id, worker.version)
            holder.count_with(self.session.in_flight)
            self.holders[shard.number] = holder
        return holder

    def take(self, leased: Leased) -> None:
        """Delivers leased jobs."""
        leased.one_by_one = not self.session.open.accepts_runs
        self.session.deliver(leased)
        self._wake.set()

    def revoke(self, job_id: int, delivery: int, reason: RevokeReason) -> None:
        """Asks the worker to stop working on a job."""
        self.session.revoke(job_id, delivery, reason)
        self._wake.set()

    def notify_unhandled(self, queue: str, names: Mapping[str, int]) -> None:
        """Notifies the worker of ready jobs that no connected worker handles."""
        self.session.notify_unhandled(queue, names)
        self._wake.set()

    def goaway(self, goaway: Goaway) -> None:
        """Asks the worker to move."""
        self.session.goaway(goaway, self._core.now())
        self._dispatcher.leave(self)
        self._wake.set()

    # As a stream.

    def answer_open(self) -> None:
        """Lists the leases that the session still holds: at once, or, if they are many, in slices
        when the first frame is asked for.
        """
        if self.session.in_flight.jobs > limits.HELD_SLICE_LEASES:
            self.session.is_resuming = True
        else:
            for _ in self._list_held():
                pass

    def _list_held(self) -> Iterator[None]:
        ids: list[int] = []
        deliveries: list[int] = []
        for holder in list(self.holders.values()):
            for some_ids, some_deliveries in holder.held_slices():
                ids += some_ids
                deliveries += some_deliveries
                yield
        self.session.opened(ids, deliveries)

    async def _list_much(self) -> None:
        for _ in self._list_held():
            await asyncio.sleep(0)
            if self.session.phase is Phase.ENDED:
                return
        self._dispatcher.welcome(self)

    def receive(self, frame: WorkerFrame) -> None:
        """Handles a frame in one step."""
        for _ in self.receive_slices(frame):
            pass

    def receive_slices(self, frame: WorkerFrame) -> Iterator[None]:
        """Handles a frame: settles, reports, then the window, so that room is used at once. Yields
        between slices, for the caller to let the loop go on.
        """
        session = self.session
        if session.phase is Phase.ENDED:
            # Its leases may be another stream's by now; what is not confirmed is said again there.
            return
        now = self._core.now()
        session.handle_any(now)
        for holder in self.holders.values():
            holder.renew(now.mono_ms)
        if frame.open is not None:
            session.handle_open()
        if frame.settles:
            yield from self._confirms.handle(frame.settles)
        yield from self._extend(frame.extends)
        self._handle_rest(frame)

    def _handle_rest(self, frame: WorkerFrame) -> None:
        session = self.session
        if session.phase is Phase.ENDED:
            return
        if frame.window is not None:
            session.handle_window(frame.window)
        if frame.drain:
            session.handle_drain()
            self._dispatcher.leave(self)
        if session.phase is Phase.OPEN:
            self._dispatcher.welcome(self)

    def _extend(self, extends: Sequence[ExtendItem]) -> Iterator[None]:
        for start in range(0, len(extends), ITEMS_AT_ONCE):
            if start:
                yield
            if self.session.phase is Phase.ENDED:
                return
            items = extends[start : start + ITEMS_AT_ONCE]
            for index, outcome in self._settling.settles.extend_checked(items):
                item = items[index]
                cancelled = outcome is SettleOutcome.CANCELLED
                # A cancelled job is still held: its worker stops, and settles it.
                reason = RevokeReason.CANCELLED if cancelled else RevokeReason.LEASE_LOST
                self.revoke(item.id, item.delivery, reason)

    def half_close(self) -> None:
        """Ends after the worker's last frame, and releases its jobs. Does nothing if the stream is
        over: its worker may be back on another one, with all its jobs.
        """
        if self.session.phase is Phase.ENDED:
            return
        self.session.handle_half_close()
        self._dispatcher.leave(self)
        self._wake.set()

    async def wait_room(self) -> None:
        """Waits while the worker has too much unread to be heard further."""
        while self._confirms.pending + self.session.unsent > UNREAD_MAX:
            if self.session.phase is Phase.ENDED:
                return
            self._has_room.clear()
            await self._has_room.wait()

    async def next_frame(self) -> ServerFrame | None:
        """Waits for a frame to send; returns None when the stream ends with OK. Raises `Refused`
        with PROTOCOL_MISTAKE for a silent worker, and SESSION_TAKEN if it is on another stream.
        """
        if self.session.is_resuming:
            await self._list_much()
        # Who asks for a frame has written the one before.
        if self.session.handle_written() and self.session.phase is Phase.OPEN:
            self._dispatcher.welcome(self)
        # Where a settle cannot be answered the worker comes back, and settles again.
        while not self._ended and not self._confirms.has_failed:
            self._wake.clear()
            now = self._core.now()
            if self.session.is_time_up(now):
                # With a last frame, if there is one.
                self.end()
            frame = self.session.frame_to_send(now)
            self._has_room.set()
            if frame is not None:
                return frame
            if self.session.is_over():
                self._leave(goodbye=True)
                return None
            if self.session.is_silent(now) and not self.session.half_closed:
                raise Refused(RefusalKind.PROTOCOL_MISTAKE, "the worker went silent")
            await self._pause(self.session.next_deadline() - now.mono_ms)
        # The server ends the stream: the worker said no goodbye, and comes back with its session,
        # after a restart too.
        self._leave(goodbye=False)
        if self._taken:
            raise Refused(RefusalKind.SESSION_TAKEN, "a newer stream took up the session")
        return None

    async def _pause(self, milliseconds: int) -> None:
        if not await is_set_within(self._wake, max(milliseconds, 1) / 1_000):
            self.session.handle_pause()

    def handle_unsent(self, leases: Iterable[tuple[int, int]]) -> None:
        """Releases jobs, as (id, delivery), of messages that were never written."""
        self._returns.start(leases)

    def handle_doubtful(self, leases: Iterable[tuple[int, int]]) -> None:
        """Releases jobs, as (id, delivery), that may have been written, but not those with ONCE."""
        self._returns.release_doubtful(leases)

    def end(self) -> None:
        """Ends the stream."""
        self._ended = True
        self._wake.set()

    def give_way(self) -> None:
        """Ends the stream and leaves its leases to a newer one of the same session."""
        self._taken = True
        self.disconnect()
        self.end()

    def disconnect(self) -> None:
        """Ends the stream after its connection broke: the leases wait for the worker to return."""
        self._leave(goodbye=False)

    def _leave(self, *, goodbye: bool) -> None:
        if self.session.phase is Phase.ENDED:
            return
        self.session.phase = Phase.ENDED
        self._has_room.set()
        self._dispatcher.leave(self)
        self._left(self, goodbye)
        # Nobody has what was not sent, and nobody comes back for anything after a goodbye: it goes
        # on at once, and that costs it nothing.
        never_sent = [*self.session.take_unsent(), *parts_of(self.held_back)]
        self.held_back.clear()
        unsent = [run for leased in never_sent for run in runs_of(leased)]
        self.handle_unsent(leases_of(unsent))
        now = self._core.now()
        for number, holder in self.holders.items():
            if goodbye:
                self._returns.abandon(holder.held(), but=leases_of(unsent))
            shard = self._core.slots[number].shard
            graces = graces_in(shard.queues, self.queues)
            shard.clocks.disconnect(now, holder, grace_ms=self._grace_ms, graces=graces)
