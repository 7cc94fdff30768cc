"""Streams: worker sessions joined to the engine.

A `StreamPort` is what the shell of one call holds: frames go in, frames come out. The session
knows the protocol, the engine knows the jobs; what stands here is who is told what when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from zlib import crc32

from jobline_server.dispatch.frames import Goaway, Open, ServerFrame, Settle, WorkerFrame
from jobline_server.dispatch.session import Phase, Session
from jobline_server.engine.commands import (
    Exceptions,
    Leased,
    RefusalKind,
    Refused,
    ReleaseItem,
)
from jobline_server.engine.decide.timers import disconnect, resume
from jobline_server.engine.holder import Holder
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import RevokeReason, SettleOutcome
from jobline_server.runtime.core import Core
from jobline_server.runtime.dispatcher import Dispatcher
from jobline_server.runtime.settles import ACKED, Settles
from jobline_server.runtime.workers import as_jobs

# How long a worker that was asked to move has for it.
GOAWAY_MS = 60_000


class StreamPort:
    """One open stream. It is the taker of its session's jobs."""

    def __init__(
        self,
        core: Core,
        dispatcher: Dispatcher,
        settles: Settles,
        session: Session,
        *,
        grace_ms: int,
        left: Callable[[StreamPort], None],
    ) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._settles = settles
        self.session = session
        self.holders: dict[int, Holder] = {}
        self.queues = session.open.queues
        self.lease_ms = session.open.lease_ms or 0
        self._grace_ms = grace_ms
        self._left = left
        self._wake = asyncio.Event()
        self._wake.set()
        self._ended = False
        self._confirming: set[asyncio.Task[None]] = set()

    # As a taker.

    def room(self) -> tuple[int, int]:
        """What its window has left."""
        return self.session.room()

    def names_for(self, queue: str) -> frozenset[str] | None:
        """The names it handles."""
        return self.session.names_for(queue)

    def holder_on(self, shard: Shard) -> Holder:
        """The session's holder on a shard; all of them share the session's tally."""
        holder = self.holders.get(shard.number)
        if holder is None:
            worker = self.session.open.worker.id
            shard.mono_ms = self._core.now().mono_ms
            holder = shard.session_holder(self.session.session, worker)
            holder.count_with(self.session.tally)
            self.holders[shard.number] = holder
        return holder

    def take(self, leased: Leased) -> None:
        """Jobs were leased to it."""
        self.session.deliver(as_jobs(leased, self.session.open.accepts_runs))
        self._wake.set()

    def revoke(self, job_id: int, delivery: int, reason: RevokeReason) -> None:
        """The worker should stop working on a job."""
        self.session.revoke(job_id, delivery, reason)
        self._wake.set()

    def goaway(self, goaway: Goaway) -> None:
        """The worker should move."""
        self.session.goaway(goaway)
        self._dispatcher.leave(self)
        self._wake.set()

    # As a port.

    def receive(self, frame: WorkerFrame) -> None:
        """Takes a frame: settles, reports, then the window, so that room is used at once."""
        session = self.session
        now = self._core.now()
        session.handle_any(now)
        for holder in self.holders.values():
            holder.heard_ms = now.mono_ms
        if frame.open is not None:
            session.handle_open()
        for settle in frame.settles:
            self._settle(settle)
        if frame.extends:
            exceptions = self._settles.extend(frame.extends)
            for index, _ in exceptions:
                item = frame.extends[index]
                self.revoke(item.id, item.delivery, RevokeReason.LEASE_LOST)
        if frame.window is not None:
            session.handle_window(frame.window)
        if frame.drain:
            session.handle_drain()
            self._dispatcher.leave(self)
        if session.phase is Phase.OPEN:
            self._dispatcher.serve_taker(self)

    def half_close(self) -> None:
        """The worker sent its last frame; what it still has goes back."""
        self.session.handle_half_close()
        self._dispatcher.leave(self)
        self._wake.set()

    async def next_frame(self) -> ServerFrame | None:
        """Waits for something to send; None when the stream is over, and OK."""
        while not self._ended:
            self._wake.clear()
            now = self._core.now()
            frame = self.session.frame_to_send(now)
            if frame is not None:
                return frame
            if self.session.is_over():
                break
            if self.session.is_silent(now) and not self.session.half_closed:
                raise Refused(RefusalKind.PROTOCOL_MISTAKE, "the worker went silent")
            await self._pause(self.session.next_deadline() - now.mono_ms)
        self._leave(goodbye=True)
        return None

    async def _pause(self, milliseconds: int) -> None:
        try:
            async with asyncio.timeout(max(milliseconds, 1) / 1_000):
                await self._wake.wait()
        except TimeoutError:
            pass

    def end(self) -> None:
        """The server ends the stream."""
        self._ended = True
        self._wake.set()

    def disconnect(self) -> None:
        """The connection broke: the leases wait for the worker to return."""
        self._leave(goodbye=False)

    def _leave(self, *, goodbye: bool) -> None:
        if self.session.phase is Phase.ENDED:
            return
        self.session.phase = Phase.ENDED
        self._dispatcher.leave(self)
        self._left(self)
        now = self._core.now()
        for number, holder in self.holders.items():
            if goodbye:
                # Nobody comes back for these: they go on at once, and it costs them nothing.
                held = [ReleaseItem(job_id, delivery) for job_id, delivery in holder.held()]
                self._settles.release(held)
            shard = self._core.shards[number]
            disconnect(shard, now, holder, grace_ms=self._grace_ms)

    # Settles.

    def _settle(self, settle: Settle) -> None:
        self.session.handle_settle()
        exceptions: Exceptions = []
        offset = len(settle.ack_ids)
        if settle.ack_ids:
            exceptions += self._settles.ack(settle.ack_ids, settle.ack_deliveries, settle.results)
        if settle.fails:
            results = self._settles.fail(settle.fails)
            exceptions += [
                (offset + index, result.outcome)
                for index, result in enumerate(results)
                if result.outcome is not SettleOutcome.DONE
            ]
            offset += len(settle.fails)
        if settle.releases:
            part = self._settles.release(settle.releases)
            exceptions += [(offset + index, outcome) for index, outcome in part]
        task = asyncio.get_running_loop().create_task(self._confirm(settle, exceptions))
        self._confirming.add(task)
        task.add_done_callback(self._confirming.discard)

    async def _confirm(self, settle: Settle, exceptions: Exceptions) -> None:
        """Answers a settle after the commit that holds it."""
        try:
            await self._core.commits.wait()
        except Refused:
            # The server stops; the worker must not take silence for an answer.
            self.end()
            return
        if exceptions:
            leases = [
                *zip(settle.ack_ids, settle.ack_deliveries, strict=True),
                *((item.id, item.delivery) for item in settle.fails),
                *((item.id, item.delivery) for item in settle.releases),
            ]
            exceptions = await self._settles.explain_missing(leases, exceptions, repeated=ACKED)
        self.session.confirm(settle.seq, exceptions)
        self._wake.set()


class Streams:
    """All open streams, and the sessions whose stream broke."""

    def __init__(
        self,
        core: Core,
        dispatcher: Dispatcher,
        settles: Settles,
        *,
        heartbeat_ms: int,
        grace_ms: int,
        new_session: Callable[[], str],
    ) -> None:
        self._core = core
        self._dispatcher = dispatcher
        self._settles = settles
        self._heartbeat_ms = heartbeat_ms
        self._grace_ms = grace_ms
        self._new_session = new_session
        self.ports: dict[str, StreamPort] = {}
        self._changed = asyncio.Event()

    def open_stream(self, first: Open) -> StreamPort:
        """Opens a stream; a session that still holds leases is resumed."""
        if self._core.draining:
            raise Refused(RefusalKind.DRAINING, "the server is draining; connect again later")
        session_id = first.session or self._new_session()
        earlier = self.ports.get(session_id)
        if earlier is not None:
            # The worker came back before the server saw its connection break.
            earlier.disconnect()
            earlier.end()
        now = self._core.now()
        session = Session(first, session_id, now, heartbeat_ms=self._heartbeat_ms)
        port = StreamPort(
            self._core,
            self._dispatcher,
            self._settles,
            session,
            grace_ms=self._grace_ms,
            left=self._left,
        )
        held = self._resume(port)
        session.opened(resumed=bool(held), held=held)
        self.ports[session_id] = port
        self._dispatcher.join(port)
        return port

    def _resume(self, port: StreamPort) -> list[tuple[int, int]]:
        """Takes up the leases of the session's earlier stream; returns (id, delivery) of each."""
        session_id = port.session.session
        now = self._core.now()
        held: list[tuple[int, int]] = []
        for shard in self._core.shards:
            if session_id not in shard.holders:
                continue
            holder = port.holder_on(shard)
            resume(shard, now, holder)
            held.extend(holder.held())
        return held

    def _left(self, port: StreamPort) -> None:
        if self.ports.get(port.session.session) is port:
            del self.ports[port.session.session]
        self._changed.set()

    def tell_revoked(self) -> None:
        """Workers are told of leases that they should stop working on."""
        for shard in self._core.shards:
            revoked, shard.revoked = shard.revoked, []
            for holder, job_id, delivery, reason in revoked:
                port = self.ports.get(holder.session) if holder.session else None
                if port is not None:
                    port.revoke(job_id, delivery, reason)

    def goaway_all(self, goaway: Goaway) -> None:
        """Every worker is asked to move."""
        for port in list(self.ports.values()):
            port.goaway(goaway)

    def send_away_old(self, max_age_ms: int) -> int:
        """Streams older than this, give or take a tenth, are asked to move, so that load spreads
        over servers; returns how many were.
        """
        now = self._core.now()
        sent_away = 0
        for port in list(self.ports.values()):
            age_ms = now.wall_ms - port.session.connected_ms
            spread = crc32(port.session.session.encode()) % 200 - 100
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
