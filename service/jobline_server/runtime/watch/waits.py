"""Waits: callers that want to know how jobs end, told after the commit that ended them, or that
deleted them.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

from jobline_server.engine.commands import Ended
from jobline_server.engine.effects import Applied
from jobline_server.engine.endings import JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.values import KEPT_STATES, EndReason, JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import damaged
from jobline_server.runtime.ended.ended_jobs import EndedJobs, Kept
from jobline_server.runtime.watch.wait_index import WaitIndex

Told = tuple[int, Ended | None]

# Ids that are noted in one iteration of the loop, some 2 µs each where many callers wait for many.
# What ends before its id is noted is looked up like all that ended before the wait.
SLICE_IDS = 2_000

# A caller with so few ids is taken out of the index at once.
FORGET_AT_ONCE = 100


class _Waiter:
    """One caller and what it has not been told yet; `ids` are all that it asked for."""

    __slots__ = ("arrived", "ids", "missing", "told")

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = array("Q", ids)
        self.missing = len(ids)
        self.told: list[Told] = []
        self.arrived = asyncio.Event()

    def tell(self, job_id: int, ended: Ended | None) -> None:
        """The caller counts as told of this job; it is not in the index any more."""
        self.missing -= 1
        self.told.append((job_id, ended))
        self.arrived.set()

    def take_told(self) -> list[Told]:
        """Hands over what was told since the last time."""
        told, self.told = self.told, []
        return told


class Waits:
    """Everybody who waits, by job."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self._waiting: WaitIndex[_Waiter] = WaitIndex()
        self._gone: deque[_Waiter] = deque()
        self._forgetting: asyncio.Task[None] | None = None

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Tells those who wait for what ended, or is deleted."""
        if not self._waiting:
            return
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, JobsEnded):
                    self._tell_jobs(ending)
                elif isinstance(ending, RunsEnded):
                    self._tell_runs(ending)
                elif isinstance(ending, QueueGone):
                    self._tell_gone(ending.live, EndReason.QUEUE_DELETED, ending.at_ms)
            self._tell_deleted(batch.applied)

    def _tell_jobs(self, ending: JobsEnded) -> None:
        for job in ending.jobs:
            for waiter in self._waiting.take(job.id):
                ended = Ended(
                    id=job.id,
                    state=ending.state,
                    ended_ms=ending.ended_ms,
                    reason=ending.reason,
                    result=ending.results.get(job.id, b""),
                    error=ending.error,
                )
                waiter.tell(job.id, ended)

    def _tell_runs(self, ending: RunsEnded) -> None:
        cancelled = ending.state is JobState.CANCELLED
        reason = EndReason.CANCELLED if cancelled else EndReason.NONE
        for first_id, count in zip(ending.starts, ending.counts, strict=True):
            for job_id in self._waiting.within(first_id, count):
                self._tell(Ended(job_id, ending.state, ending.ended_ms, reason))

    def _tell_deleted(self, applied: Iterable[Applied]) -> None:
        for fact, _, _ in applied:
            if isinstance(fact, JobsDeleted) and fact.state not in KEPT_STATES:
                runs = zip(fact.starts, fact.counts, strict=True)
                is_active = fact.state is JobState.ACTIVE
                why = EndReason.QUEUE_DELETED if is_active else EndReason.DELETED
                self._tell_gone(runs, why, fact.at_ms)

    def _tell_gone(self, runs: Iterable[tuple[int, int]], why: EndReason, at_ms: int) -> None:
        for first_id, count in runs:
            for job_id in self._waiting.within(first_id, count):
                self._tell(Ended(job_id, None, at_ms, why))

    def _tell(self, ended: Ended) -> None:
        for waiter in self._waiting.take(ended.id):
            waiter.tell(ended.id, ended)

    async def wait(self, ids: Sequence[int], timeout_ms: int) -> AsyncGenerator[list[Told], None]:
        """Yields jobs as they end; `None` for ids that are neither live nor kept. Ends when all
        were told, or the time is over.
        """
        waiter = _Waiter(ids)
        del ids
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1_000
        try:
            for start in range(0, len(waiter.ids), SLICE_IDS):
                if start:
                    await asyncio.sleep(0)
                self._waiting.add(waiter.ids[start : start + SLICE_IDS], waiter)
            async for _ in self._tell_ended_before(waiter):
                # What is told already is not kept until the last one has been looked up.
                yield waiter.take_told()
            while waiter.missing or waiter.told:
                if waiter.told:
                    yield waiter.take_told()
                elif not await _arrives(waiter, deadline):
                    break
        finally:
            self._forget(waiter)

    def _forget(self, waiter: _Waiter) -> None:
        """Takes a caller that is gone out of the index. With ten thousand ids that takes some
        milliseconds, and a connection that breaks may have had a thousand callers: one at a time.
        """
        if len(waiter.ids) <= FORGET_AT_ONCE:
            self._waiting.remove(waiter.ids, waiter)
            return
        self._gone.append(waiter)
        if self._forgetting is None:
            self._forgetting = asyncio.get_running_loop().create_task(self._forget_gone())

    async def _forget_gone(self) -> None:
        try:
            while self._gone:
                waiter = self._gone.popleft()
                self._waiting.remove(waiter.ids, waiter)
                await asyncio.sleep(0)
        finally:
            self._forgetting = None

    async def _tell_ended_before(self, waiter: _Waiter) -> AsyncIterator[None]:
        """Looks up what was not live when the wait began, and yields after each part. What ended a
        moment ago is told by its own commit, so that is waited for first.
        """
        gone = sorted(job_id for job_id in waiter.ids if not self._is_live(job_id))
        if not gone:
            return
        await self._core.commits.wait()
        waiting = self._waiting
        async for look in self._ended.look_up([one for one in gone if waiting.has(one, waiter)]):
            for job_id in look.ids:
                kept = look.kept.get(job_id)
                if kept is None and job_id in look.damaged:
                    raise damaged(job_id)
                # If it is live, it was put back by hand meanwhile.
                if kept is not None or not self._is_live(job_id):
                    self._tell_one(waiter, job_id, ended_from(kept) if kept else None)
            yield

    def _tell_one(self, waiter: _Waiter, job_id: int, ended: Ended | None) -> None:
        if self._waiting.has(job_id, waiter):
            self._waiting.remove([job_id], waiter)
            waiter.tell(job_id, ended)

    def _is_live(self, job_id: int) -> bool:
        shard = self._core.shard_of_id(job_id)
        return shard is not None and shard.state_of(job_id) is not None


async def _arrives(waiter: _Waiter, deadline: float) -> bool:
    """Waits for news; false when the time is over."""
    waiter.arrived.clear()
    try:
        async with asyncio.timeout_at(deadline):
            await waiter.arrived.wait()
    except TimeoutError:
        return False
    return True


def ended_from(kept: Kept) -> Ended:
    """What is told of a job that ended long ago."""
    record = kept.record
    return Ended(
        id=record.id,
        state=kept.outcome,
        ended_ms=record.ended_ms,
        reason=record.reason,
        result=record.result,
        error=record.error,
    )
