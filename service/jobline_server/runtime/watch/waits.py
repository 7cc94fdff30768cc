"""Waits: notifies callers how jobs ended, after the commit that ended or deleted them."""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from typing import overload

from jobline_server.engine.commands import Refused
from jobline_server.engine.effects import Applied
from jobline_server.engine.endings import Ended, JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.values import KEPT_STATES, EndReason, JobState, ids_of_shard
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import damaged
from jobline_server.runtime.ended.ended_jobs import EndedJobs, Kept
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.waiting import is_set_by
from jobline_server.runtime.watch.partials import Partials, Piece
from jobline_server.runtime.watch.wait_index import WaitIndex

WaitedEnd = tuple[int, Ended | None]

# Ids added to the index in one iteration of the loop, some 2 µs each where many callers wait for
# many. A job that ends before its id is added is looked up, like all that ended before the wait.
SLICE_IDS = 2_000

# A caller with up to this many ids is removed from the index at once.
REMOVE_AT_ONCE = 100


class _Waiter:
    """A caller, its ids, and the ends that it has not taken yet."""

    __slots__ = ("arrived", "ends", "ids", "missing", "refusal")

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = array("Q", ids)
        self.missing = len(ids)
        self.ends: list[WaitedEnd] = []
        self.arrived = asyncio.Event()
        self.refusal: Refused | None = None

    def refuse(self, refusal: Refused) -> None:
        """Ends the wait after the ends that were added before."""
        self.refusal = refusal
        self.arrived.set()

    def add(self, job_id: int, ended: Ended | None) -> None:
        """Adds the end of a job, whose entry was removed from the index."""
        self.missing -= 1
        self.ends.append((job_id, ended))
        self.arrived.set()

    def take_ends(self) -> list[WaitedEnd]:
        """Removes and returns the ends since the last call."""
        ends, self.ends = self.ends, []
        return ends


class Waits:
    """All callers that wait for jobs."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self.partials = Partials(max(slot.shard.epoch for slot in core.slots))
        self._core = core
        self._ended = ended
        self._waiting: WaitIndex[_Waiter] = WaitIndex()
        self._gone: deque[_Waiter] = deque()
        self._removing: asyncio.Task[None] | None = None

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Notifies the callers that wait for jobs that ended or were deleted."""
        if not self._waiting:
            return
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, JobsEnded):
                    self._notify_jobs(ending)
                elif isinstance(ending, RunsEnded):
                    self._notify_runs(ending)
                elif isinstance(ending, QueueGone):
                    self._notify_gone(ending.live, EndReason.QUEUE_DELETED, ending.at_ms)
            self._notify_deleted(batch.applied)

    def on_closed(self, slot: ShardSlot) -> None:
        """Refuses the callers that wait for jobs of a shard that was lost."""
        ids = ids_of_shard(slot.number)
        for job_id in self._waiting.within(ids.start, len(ids)):
            for waiter in self._waiting.take(job_id):
                waiter.refuse(self._core.slots.refusal(slot.number))

    def _notify_jobs(self, ending: JobsEnded) -> None:
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
                waiter.add(job.id, ended)

    def _notify_runs(self, ending: RunsEnded) -> None:
        for first_id, count in zip(ending.starts, ending.counts, strict=True):
            for job_id in self._waiting.within(first_id, count):
                self._notify(Ended(job_id, ending.state, ending.ended_ms, ending.reason))

    def _notify_deleted(self, applied: Iterable[Applied]) -> None:
        for fact, _, _ in applied:
            if isinstance(fact, JobsDeleted) and fact.state not in KEPT_STATES:
                runs = zip(fact.starts, fact.counts, strict=True)
                is_active = fact.state is JobState.ACTIVE
                why = EndReason.QUEUE_DELETED if is_active else EndReason.DELETED
                self._notify_gone(runs, why, fact.at_ms)

    def _notify_gone(self, runs: Iterable[tuple[int, int]], why: EndReason, at_ms: int) -> None:
        for first_id, count in runs:
            for job_id in self._waiting.within(first_id, count):
                self._notify(Ended(job_id, None, at_ms, why))

    def _notify(self, ended: Ended) -> None:
        for waiter in self._waiting.take(ended.id):
            waiter.add(ended.id, ended)

    @overload
    def wait(
        self, ids: Sequence[int], timeout_ms: int
    ) -> AsyncGenerator[Sequence[WaitedEnd], None]: ...
    @overload
    def wait(
        self, ids: Sequence[int], timeout_ms: int, *, partials: bool
    ) -> AsyncGenerator[Sequence[WaitedEnd | Piece], None]: ...
    async def wait(
        self, ids: Sequence[int], timeout_ms: int, *, partials: bool = False
    ) -> AsyncGenerator[Sequence[WaitedEnd | Piece], None]:
        """Yields jobs as they end; `None` for ids that are neither live nor kept. Returns after the
        last job, or at the timeout. With `partials` the pieces of each job come before its end.
        """
        waiter = _Waiter(ids)
        reader = self.partials.read(ids if partials else (), waiter.arrived.set)
        del ids
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1_000
        try:
            for start in range(0, len(waiter.ids), SLICE_IDS):
                if start:
                    await asyncio.sleep(0)
                self._waiting.add(waiter.ids[start : start + SLICE_IDS], waiter)
            async for _ in self._notify_ended_before(waiter):
                # Ends found so far are sent before the rest is looked up.
                yield waiter.take_ends()
            while waiter.missing or waiter.ends:
                if pieces := reader.take():
                    yield pieces
                elif waiter.ends:
                    yield waiter.take_ends()
                elif waiter.refusal is not None:
                    raise waiter.refusal
                elif not await _arrives(waiter, deadline):
                    break
        finally:
            reader.close()
            self._remove(waiter)

    def _remove(self, waiter: _Waiter) -> None:
        """Removes a caller from the index. With ten thousand ids that takes milliseconds, and a
        broken connection may have had a thousand callers, so a task removes large ones one by one.
        """
        if len(waiter.ids) <= REMOVE_AT_ONCE:
            self._waiting.remove(waiter.ids, waiter)
            return
        self._gone.append(waiter)
        if self._removing is None:
            self._removing = asyncio.get_running_loop().create_task(self._remove_gone())

    async def _remove_gone(self) -> None:
        try:
            while self._gone:
                waiter = self._gone.popleft()
                self._waiting.remove(waiter.ids, waiter)
                await asyncio.sleep(0)
        finally:
            self._removing = None

    async def _notify_ended_before(self, waiter: _Waiter) -> AsyncIterator[None]:
        """Looks up jobs that were not live when the wait began; yields after each slice. Waits for
        the commit first, because a job that has just ended is kept only after it.
        """
        gone: list[int] = []
        for start in range(0, len(waiter.ids), SLICE_IDS):
            if start:
                await asyncio.sleep(0)
            ids = waiter.ids[start : start + SLICE_IDS]
            gone += [job_id for job_id in ids if not self._is_live(job_id)]
        if not gone:
            return
        gone.sort()
        await self._core.commits.wait()
        waiting = self._waiting
        wanted = [job_id for job_id in gone if waiting.has(job_id, waiter)]
        async for found in self._ended.look_up(wanted):
            for job_id in found.ids:
                kept = found.kept.get(job_id)
                if kept is None and job_id in found.damaged:
                    raise damaged(job_id)
                # If it is live, an operator has retried it meanwhile.
                if kept is not None or not self._is_live(job_id):
                    self._notify_one(waiter, job_id, ended_from(kept) if kept else None)
            yield

    def _notify_one(self, waiter: _Waiter, job_id: int, ended: Ended | None) -> None:
        if self._waiting.has(job_id, waiter):
            self._waiting.remove([job_id], waiter)
            waiter.add(job_id, ended)

    def _is_live(self, job_id: int) -> bool:
        slot = self._core.slots.of_id(job_id)
        return slot is not None and slot.shard.state_of(job_id) is not None


async def _arrives(waiter: _Waiter, deadline: float) -> bool:
    """Waits for an end; returns False at the deadline."""
    waiter.arrived.clear()
    return await is_set_by(waiter.arrived, deadline)


def ended_from(kept: Kept) -> Ended:
    """Returns the end of a kept job."""
    record = kept.record
    return Ended(
        id=record.id,
        state=kept.outcome,
        ended_ms=record.ended_ms,
        reason=record.reason,
        result=record.result,
        error=record.error,
    )
