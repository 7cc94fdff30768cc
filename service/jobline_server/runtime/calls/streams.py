"""Streams: all open worker streams by session, and how a session is resumed after its stream
broke.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

from jobline_server.dispatch.frames import Goaway, Open
from jobline_server.dispatch.session import Phase, Session
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.holder import Holder
from jobline_server.engine.values import RevokeReason
from jobline_server.runtime.calls.handlers import Handlers
from jobline_server.runtime.calls.presence import Presence
from jobline_server.runtime.calls.returns import Returns
from jobline_server.runtime.calls.settling import Settling
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.slots import ShardSlot

# How long a worker that was asked to move has for it.
GOAWAY_MS = 60_000
# Workers of a queue that are told in one iteration of the loop: each of them is written a frame.
TOLD_AT_ONCE = 16
# What stands between the name of a session, which operators see, and its secret: who has both may
# take it up.
SECRET_MARK = "."


def shown_name(session_id: str) -> str:
    """Returns the part of a session's id that may be shown."""
    return session_id.partition(SECRET_MARK)[0]


class Streams:
    """All open streams, and the sessions whose stream broke."""

    def __init__(
        self,
        core: Core,
        dispatcher: Dispatcher,
        settling: Settling,
        returns: Returns,
        *,
        heartbeat_ms: int,
        grace_ms: int,
        new_name: Callable[[], str],
    ) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._settling = settling
        self._returns = returns
        self._heartbeat_ms = heartbeat_ms
        self._grace_ms = grace_ms
        self._new_name = new_name
        self.open: dict[str, WorkerStream] = {}
        self.handlers = Handlers()
        self.presence = Presence(core, grace_ms=grace_ms)
        core.open_streams = self.open
        self._changed = asyncio.Event()
        self._revoking: set[asyncio.Task[None]] = set()

    def open_stream(self, first: Open) -> WorkerStream:
        """Opens a stream. Resumes a known session, and ends its older stream; an unknown one gets a
        new id, because the server names sessions.
        """
        if self._core.draining:
            raise Refused(RefusalKind.DRAINING, "the server is draining; connect again later")
        self._core.slots.check_any_queue(first.queues)
        first = self.handlers.schemas.shared(first, self._core.now().mono_ms)
        is_known = self._is_known(first.session)
        session_id = first.session if is_known else self._new_session()
        earlier = self.open.get(session_id)
        if earlier is not None:
            # The worker came back before the server saw its connection break.
            earlier.give_way()
        self.presence.handle_open(first, is_known=is_known)
        now = self._core.now()
        session = Session(first, session_id, now, heartbeat_ms=self._heartbeat_ms)
        stream = WorkerStream(
            self._core,
            self._dispatcher,
            self._settling,
            self._returns,
            session,
            grace_ms=self._grace_ms,
            left=self._left,
        )
        self._resume(stream)
        self.open[session_id] = stream
        self.handlers.add(stream, first)
        self._dispatcher.join(stream)
        stream.answer_open()
        return stream

    def _is_known(self, session_id: str) -> bool:
        """Returns whether this server gave the session, perhaps before a restart, and it has not
        expired: it has a stream, or leases that wait for one.
        """
        if session_id in self.open:
            return True
        return any(session_id in slot.shard.clocks.holders for slot in self._core.slots)

    def _new_session(self) -> str:
        """Returns a session id that cannot be guessed, with a part that may be shown."""
        return f"{self._new_name()}{SECRET_MARK}{self._new_name()}"

    def _resume(self, stream: WorkerStream) -> None:
        """Takes over the leases of the session's earlier stream, and the counts of what it has in
        flight.
        """
        session_id = stream.session.session_id
        now = self._core.now()
        shards = [slot.shard for slot in self._core.slots]
        shards = [shard for shard in shards if session_id in shard.clocks.holders]
        if shards:
            stream.session.in_flight = shards[0].clocks.holders[session_id].in_flight
        for shard in shards:
            shard.clocks.resume(now, stream.holder_on(shard))

    def _left(self, stream: WorkerStream, goodbye: bool) -> None:
        if not goodbye:
            self.presence.handle_break(stream.session_id, stream.session.open)
        if self.open.get(stream.session.session_id) is stream:
            del self.open[stream.session.session_id]
        self.handlers.remove(stream)
        self._changed.set()

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Notifies workers of leases that they should stop working on."""
        now = self._core.now()
        for batch in batches:
            for holder, job_id, delivery, reason in batch.revoked:
                stream = self.open.get(holder.session_id) if holder.session_id else None
                if stream is not None:
                    stream.revoke(job_id, delivery, reason)
                    if reason is RevokeReason.LEASE_LOST:
                        stream.session.handle_lost_lease(now, holder.lease_ms_min)

    def on_closed(self, slot: ShardSlot) -> None:
        """Ends what a lost shard had here: revokes its leases in slices, and ends streams none of
        whose queues is here any more, so that their workers look elsewhere.
        """
        lost: list[tuple[WorkerStream, Holder]] = []
        for stream in self.open.values():
            holder = stream.holders.pop(slot.number, None)
            if holder is not None:
                lost.append((stream, holder))
        task = asyncio.get_running_loop().create_task(self._revoke(lost))
        self._revoking.add(task)
        task.add_done_callback(self._revoking.discard)

    async def _revoke(self, lost: Sequence[tuple[WorkerStream, Holder]]) -> None:
        for stream, holder in lost:
            for ids, deliveries in holder.held_slices():
                for job_id, delivery in zip(ids, deliveries, strict=True):
                    stream.revoke(job_id, delivery, RevokeReason.LEASE_LOST)
                await asyncio.sleep(0)
            for lease in holder.leases.values():
                jobs, payload_bytes = lease.open_totals()
                holder.free_slots(lease, jobs)
                holder.settle(jobs, payload_bytes)
        for stream in list(self.open.values()):
            try:
                self._core.slots.check_any_queue(stream.queues)
            except Refused:
                stream.end()

    async def notify_unhandled(self, queue: str, names: Mapping[str, int]) -> None:
        """Notifies the workers of a queue of ready jobs that none of them handles, by name, a few
        in each iteration of the loop. Those that take no more jobs are not notified.
        """
        consumers = self._core.rings.consumers(queue)
        for start in range(0, len(consumers), TOLD_AT_ONCE):
            for consumer in consumers[start : start + TOLD_AT_ONCE]:
                if isinstance(consumer, WorkerStream):
                    consumer.notify_unhandled(queue, names)
            await asyncio.sleep(0)

    def goaway_all(self, goaway: Goaway) -> None:
        """Asks every worker to move."""
        for stream in list(self.open.values()):
            stream.goaway(goaway)

    async def send_away_old(self, max_age_ms: int) -> int:
        """Asks the workers of streams older than this, give or take a tenth, to move, so that load
        spreads over servers; returns how many. Ends those that were asked before and whose time is
        up, also where a worker does not read. It goes in slices.
        """
        now, pace = self._core.now(), Pace()
        sent_away = 0
        for stream in list(self.open.values()):
            await pace.rest()
            if stream.session.is_time_up(now):
                stream.disconnect()
                stream.end()
                continue
            age_ms = now.mono_ms - stream.session.opened_ms
            spread = crc32(stream.session.session_id.encode()) % 200 - 100
            if stream.session.phase is Phase.OPEN and age_ms * 1_000 > max_age_ms * (
                1_000 + spread
            ):
                close_ms = now.wall_ms + GOAWAY_MS
                stream.goaway(Goaway("the stream is old enough", close_ms, retry_delay_ms=0))
                sent_away += 1
        return sent_away

    async def wait_empty(self, seconds: float) -> bool:
        """Waits up to this long until no stream is left; returns whether none is."""
        try:
            async with asyncio.timeout(seconds):
                while self.open:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def end_all(self) -> None:
        """Ends every stream."""
        for stream in list(self.open.values()):
            stream.end()
