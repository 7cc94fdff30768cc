"""Statistics: counts and health of the server, and who is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from jobline_server.dispatch.frames import Worker
from jobline_server.dispatch.session import Phase
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.calls.streams import Streams, shown_name
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import LOOKUP_JOBS, EndedJobs
from jobline_server.runtime.health import ClosedShard
from jobline_server.runtime.queries.paging import first_names, page_by_name, worker_bytes
from jobline_server.runtime.views import DeadCount, ServerView, ShardView, WorkerView

# Queues of a step: each takes a microsecond or two.
STEP_QUEUES = 2_000
# Sessions of a step, for the same time.
STEP_WORKERS = 1_000


class Statistics:
    """Reads counts that the engine keeps anyway."""

    def __init__(self, core: Core, streams: Streams, ended: EndedJobs) -> None:
        self._core = core
        self._streams = streams
        self._ended = ended

    async def of_server(self) -> ServerView:
        """Returns counts over all shards and queues, added up in slices."""
        core = self._core
        load = core.load
        # In one step with the totals of queues that are gone, so that each queue counts once.
        queues_of = [(slot, list(slot.shard.queues.values())) for slot in core.slots]
        closed = list(core.slots.closed.values())
        view = ServerView(
            started_ms=core.started_ms,
            queues=0,
            scheduled=0,
            blocked=0,
            ready=0,
            active=0,
            dead=0,
            completed=0,
            pushed_total=load.gone_pushed_total,
            completed_total=load.gone_completed_total,
            failed_total=load.gone_failed_total,
            workers=len(self._streams.open),
            commits=core.commits.commits,
            commit_ms=core.commits.meter.mean_seconds * 1_000,
            loop_lag_ms=core.heartbeat.lag.longest() * 1_000,
            keys=load.keys,
            throttled_keys=load.throttles,
            disk_full=core.commits.disk_full,
            waiting_bytes=load.held_bytes(),
            shards=[],
        )
        for slot, queues in queues_of:
            shard = slot.shard
            live_jobs = 0
            for at in range(0, len(queues), STEP_QUEUES):
                live_jobs += _count(view, queues[at : at + STEP_QUEUES])
                await asyncio.sleep(0)
            view.queues += len(queues)
            view.shards.append(
                ShardView(
                    shard=shard.number,
                    epoch=shard.epoch,
                    offset=shard.committed,
                    checkpoint_offset=slot.position.checkpoint_offset,
                    live_jobs=live_jobs,
                    queues=len(queues),
                )
            )
        view.shards += map(_closed, closed)
        return view

    async def of_dead_letters(self, queue: str) -> list[DeadCount]:
        """Returns what dead jobs have in common, the most frequent first."""
        await self._ended.write()
        counts: list[DeadCount] = []
        for number, group in enumerate(await self._ended.ended_store.dead_statistics(queue), 1):
            counts.append(
                DeadCount(
                    queue=group.queue,
                    name=group.name,
                    reason=EndReason(group.reason),
                    error_type=group.error_type,
                    count=group.count,
                    oldest_ms=group.oldest_ms,
                    newest_ms=group.newest_ms,
                )
            )
            if number % LOOKUP_JOBS == 0:
                await asyncio.sleep(0)
        return counts

    async def list_workers(
        self, *, page_size: int, page_token: str, queue: str
    ) -> tuple[list[WorkerView], str]:
        """Returns a page of workers by session: connected ones, and lost ones whose leases are
        still held. The queues of a lost one are unknown, so `queue` leaves it out. A page cut short
        by its size holds at least one worker.
        """
        sessions: dict[str, str] = {}

        def names() -> Iterator[list[str]]:
            for part in self._connected(queue) if queue else self._all_sessions():
                named = {shown_name(session): session for session in part}
                found = [name for name in named if name > page_token and name not in sessions]
                sessions.update(named)
                yield found

        def show(name: str) -> WorkerView | None:
            stream = self._streams.open.get(sessions[name])
            if stream is not None:
                return _shown(stream)
            return None if queue else self._shown_lost(sessions[name])

        first = await first_names(names(), page_size + 1)
        return await page_by_name(first, page_size, show, worker_bytes)

    def _all_sessions(self) -> Iterator[list[str]]:
        """Yields the sessions of connected and lost workers in slices, some more than once."""
        yield from self._connected("")
        for slot in self._core.slots:
            holders = list(slot.shard.clocks.holders.items())
            for at in range(0, len(holders), STEP_WORKERS):
                part = holders[at : at + STEP_WORKERS]
                yield [session for session, holder in part if holder.leases]

    def _connected(self, queue: str) -> Iterator[list[str]]:
        """Yields the sessions of connected workers, of one queue if it is not "", in slices."""
        streams = list(self._streams.open.items())
        for at in range(0, len(streams), STEP_WORKERS):
            yield [
                session
                for session, stream in streams[at : at + STEP_WORKERS]
                if not queue or any(taken == queue for taken, _ in stream.queues)
            ]

    def _shown_lost(self, session: str) -> WorkerView | None:
        """Returns what is known of a session without a stream; None if it has no leases."""
        found = (slot.shard.clocks.holders.get(session) for slot in self._core.slots)
        holders = [holder for holder in found if holder is not None and holder.leases]
        if not holders:
            return None
        last_seen_ms = max(holder.last_seen_ms for holder in holders)
        # One for all shards, or after a restart one for each: leases may be a million.
        in_flights = {id(holder.in_flight): holder.in_flight.jobs for holder in holders}
        return WorkerView(
            session=shown_name(holders[0].session_id),
            worker=Worker(id=holders[0].worker),
            queues=(),
            handlers=(),
            window=0,
            in_flight=sum(in_flights.values()),
            connected_ms=0,
            last_heard_ms=self._core.clock.wall_at(last_seen_ms),
            draining=False,
            lost=True,
        )


def _closed(closed: ClosedShard) -> ShardView:
    return ShardView(
        shard=closed.number,
        epoch=closed.epoch,
        offset=closed.offset,
        checkpoint_offset=closed.checkpoint_offset,
        live_jobs=0,
        queues=0,
        problem=f"{closed.health.value}: {closed.why}",
    )


def _count(view: ServerView, queues: Sequence[Queue]) -> int:
    """Adds queues to the counts, and returns how many live jobs they have."""
    live_jobs = 0
    for queue in queues:
        counts = queue.counts
        live_jobs += queue.live()
        view.scheduled += counts[JobState.SCHEDULED]
        view.blocked += counts[JobState.BLOCKED]
        view.ready += counts[JobState.READY]
        view.active += counts[JobState.ACTIVE]
        view.dead += counts[JobState.DEAD]
        view.completed += counts[JobState.COMPLETED]
        view.pushed_total += queue.pushed_total
        view.completed_total += queue.completed_total
        view.failed_total += queue.failed_total
    return live_jobs


def _shown(port: WorkerStream) -> WorkerView:
    session = port.session
    return WorkerView(
        session=shown_name(session.session_id),
        worker=session.open.worker,
        queues=session.open.queues,
        handlers=session.open.handlers,
        window=session.window.jobs,
        in_flight=session.in_flight.jobs,
        connected_ms=session.connected_ms,
        last_heard_ms=session.last_seen_wall_ms,
        draining=session.phase is Phase.DRAINING,
        lost=False,
    )
