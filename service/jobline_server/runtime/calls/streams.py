"""Streams: all open worker streams by session, and the way back for those whose stream broke."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

from jobline_server.dispatch.frames import Goaway, Open
from jobline_server.dispatch.session import Phase, Session
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.holder import Holder
from jobline_server.engine.values import RevokeReason
from jobline_server.runtime.calls.returns import Returns
from jobline_server.runtime.calls.settling import Settling
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.slots import ShardSlot

# How long a worker that was asked to move has for it.
GOAWAY_MS = 60_000
# What stands between the name of a session, which operators see, and its secret: who has both may
# take it up.
SECRET_MARK = "."


def shown_name(session_id: str) -> str:
    """The part of a session's id that may be shown."""
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
        self.ports: dict[str, WorkerStream] = {}
        core.open_streams = self.ports
        self._changed = asyncio.Event()
        self._revoking: set[asyncio.Task[None]] = set()

    def open_stream(self, first: Open) -> WorkerStream:
        """Opens a stream. A session that is known is resumed, and an older stream of it ends; one
        that is not gets a new id: sessions are the server's to name.
        """
        if self._core.draining:
            raise Refused(RefusalKind.DRAINING, "the server is draining; connect again later")
        self._core.slots.check_any_queue(first.queues)
        session_id = first.session if self._is_known(first.session) else self._new_session()
        earlier = self.ports.get(session_id)
        if earlier is not None:
            # The worker came back before the server saw its connection break.
            earlier.give_way()
        now = self._core.now()
        session = Session(first, session_id, now, heartbeat_ms=self._heartbeat_ms)
        port = WorkerStream(
            self._core,
            self._dispatcher,
            self._settling,
            self._returns,
            session,
            grace_ms=self._grace_ms,
            left=self._left,
        )
        self._resume(port)
        self.ports[session_id] = port
        self._dispatcher.join(port)
        port.answer_open()
        return port

    def _is_known(self, session_id: str) -> bool:
        """Whether a session was given by this server, before a restart perhaps, and has not
        expired: it has a stream, or leases that wait for one.
        """
        if session_id in self.ports:
            return True
        return any(session_id in slot.shard.clocks.holders for slot in self._core.slots)

    def _new_session(self) -> str:
        """A session that nobody can guess, whose name may be shown."""
        return f"{self._new_name()}{SECRET_MARK}{self._new_name()}"

    def _resume(self, port: WorkerStream) -> None:
        """Takes up the leases of the session's earlier stream, and its tally, in which they are
        counted.
        """
        session_id = port.session.session_id
        now = self._core.now()
        shards = [slot.shard for slot in self._core.slots]
        shards = [shard for shard in shards if session_id in shard.clocks.holders]
        if shards:
            port.session.in_flight = shards[0].clocks.holders[session_id].in_flight
        for shard in shards:
            shard.clocks.resume(now, port.holder_on(shard))

    def _left(self, port: WorkerStream) -> None:
        if self.ports.get(port.session.session_id) is port:
            del self.ports[port.session.session_id]
        self._changed.set()

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Notifies workers of leases that they should stop working on."""
        now = self._core.now()
        for batch in batches:
            for holder, job_id, delivery, reason in batch.revoked:
                port = self.ports.get(holder.session_id) if holder.session_id else None
                if port is not None:
                    port.revoke(job_id, delivery, reason)
                    if reason is RevokeReason.LEASE_LOST:
                        port.session.handle_lost_lease(now, holder.lease_ms_min)

    def on_closed(self, slot: ShardSlot) -> None:
        """A shard was lost, and all leases on it: those are revoked some at a time. Streams none of
        whose queues is here any more end, so that their workers look elsewhere.
        """
        lost: list[tuple[WorkerStream, Holder]] = []
        for port in self.ports.values():
            holder = port.holders.pop(slot.number, None)
            if holder is not None:
                lost.append((port, holder))
        task = asyncio.get_running_loop().create_task(self._revoke(lost))
        self._revoking.add(task)
        task.add_done_callback(self._revoking.discard)

    async def _revoke(self, lost: Sequence[tuple[WorkerStream, Holder]]) -> None:
        for port, holder in lost:
            for ids, deliveries in holder.held_slices():
                for job_id, delivery in zip(ids, deliveries, strict=True):
                    port.revoke(job_id, delivery, RevokeReason.LEASE_LOST)
                await asyncio.sleep(0)
            for lease in holder.leases.values():
                holder.settle(*lease.unfinished())
        for port in list(self.ports.values()):
            try:
                self._core.slots.check_any_queue(port.queues)
            except Refused:
                port.end()

    def tell_unhandled(self, queue: str, names: Mapping[str, int]) -> None:
        """The workers of a queue are told of jobs that none of them handles, by name."""
        for port in self.ports.values():
            if any(name == queue for name, _ in port.queues):
                port.tell_unhandled(queue, names)

    def goaway_all(self, goaway: Goaway) -> None:
        """Every worker is asked to move."""
        for port in list(self.ports.values()):
            port.goaway(goaway)

    def send_away_old(self, max_age_ms: int) -> int:
        """Streams older than this, give or take a tenth, are asked to move, so that load spreads
        over servers; returns how many were. Those that were asked before and whose time is up end,
        also where a worker does not read.
        """
        now = self._core.now()
        sent_away = 0
        for port in list(self.ports.values()):
            if port.session.is_time_up(now):
                port.disconnect()
                port.end()
                continue
            age_ms = now.mono_ms - port.session.opened_ms
            spread = crc32(port.session.session_id.encode()) % 200 - 100
            if port.session.phase is Phase.OPEN and age_ms * 1_000 > max_age_ms * (1_000 + spread):
                close_ms = now.wall_ms + GOAWAY_MS
                port.goaway(Goaway("the stream is old enough", close_ms, retry_delay_ms=0))
                sent_away += 1
        return sent_away

    async def wait_empty(self, seconds: float) -> bool:
        """Waits until no stream is left, at most this long; returns whether that came to be."""
        try:
            async with asyncio.timeout(seconds):
                while self.ports:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def end_all(self) -> None:
        """Every stream ends."""
        for port in list(self.ports.values()):
            port.end()
