"""Waits: callers that want to know how jobs end, told after the commit that ended them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from jobline_server.engine.commands import Ended
from jobline_server.engine.endings import EndedJobs as JobsEnding
from jobline_server.engine.endings import EndedRuns
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.commits import Turn
from jobline_server.runtime.core import Core
from jobline_server.runtime.damage import damaged
from jobline_server.runtime.ended import EndedJobs, Kept

Told = tuple[int, Ended | None]


class _Waiter:
    """One caller and what it has not heard of yet."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.missing = set(ids)
        self.told: list[Told] = []
        self.arrived = asyncio.Event()

    def tell(self, job_id: int, ended: Ended | None) -> None:
        if job_id in self.missing:
            self.missing.remove(job_id)
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
        self._by_id: dict[int, list[_Waiter]] = {}

    def told(self, turns: Sequence[Turn]) -> None:
        """Tells those who wait for what ended."""
        if not self._by_id:
            return
        for turn in turns:
            for ending in turn.endings:
                if isinstance(ending, JobsEnding):
                    self._tell_jobs(ending)
                elif isinstance(ending, EndedRuns):
                    self._tell_runs(ending)

    def _tell_jobs(self, ending: JobsEnding) -> None:
        for job in ending.jobs:
            if job.id in self._by_id:
                ended = Ended(
                    id=job.id,
                    state=ending.state,
                    ended_ms=ending.ended_ms,
                    reason=ending.reason,
                    result=ending.results.get(job.id, b""),
                    error=ending.error,
                )
                self._tell(ended)

    def _tell_runs(self, ending: EndedRuns) -> None:
        waited = self._by_id
        cancelled = ending.state is JobState.CANCELLED
        reason = EndReason.CANCELLED if cancelled else EndReason.NONE
        for first_id, count in zip(ending.starts, ending.counts, strict=True):
            # Whichever is shorter is walked: the run, or the list of those who are waited for.
            if count <= len(waited):
                hits = [job_id for job_id in range(first_id, first_id + count) if job_id in waited]
            else:
                hits = [job_id for job_id in waited if first_id <= job_id < first_id + count]
            for job_id in hits:
                self._tell(Ended(job_id, ending.state, ending.ended_ms, reason))

    def _tell(self, ended: Ended) -> None:
        for waiter in self._by_id.get(ended.id, ()):
            waiter.tell(ended.id, ended)

    async def wait(self, ids: Sequence[int], timeout_ms: int) -> AsyncGenerator[list[Told], None]:
        """Yields jobs as they end; `None` for ids that are neither live nor kept. Ends when all
        were told, or the time is over.
        """
        waiter = _Waiter(ids)
        for job_id in waiter.missing:
            self._by_id.setdefault(job_id, []).append(waiter)
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1_000
        try:
            async for _ in self._tell_ended_before(waiter, ids):
                # What is told already is not kept until the last one has been looked up.
                yield waiter.take_told()
            while waiter.missing or waiter.told:
                if waiter.told:
                    yield waiter.take_told()
                elif not await _arrives(waiter, deadline):
                    break
        finally:
            self._forget(waiter, ids)

    async def _tell_ended_before(self, waiter: _Waiter, ids: Sequence[int]) -> AsyncIterator[None]:
        """Looks up what was not live when the wait began, and yields after each part. What ended a
        moment ago is told by its own commit, so that is waited for first.
        """
        gone = sorted(job_id for job_id in ids if not self._is_live(job_id))
        if not gone:
            return
        await self._core.commits.wait()
        async for look in self._ended.look_up([one for one in gone if one in waiter.missing]):
            for job_id in look.ids:
                kept = look.kept.get(job_id)
                if kept is not None:
                    waiter.tell(job_id, ended_from(kept))
                elif job_id in look.damaged:
                    raise damaged(job_id)
                elif not self._is_live(job_id):
                    # Else it was put back by hand meanwhile.
                    waiter.tell(job_id, None)
            yield

    def _is_live(self, job_id: int) -> bool:
        shard = self._core.shard_of_id(job_id)
        return shard is not None and shard.state_of(job_id) is not None

    def _forget(self, waiter: _Waiter, ids: Sequence[int]) -> None:
        for job_id in ids:
            waiters = self._by_id.get(job_id)
            if waiters is None:
                continue
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                del self._by_id[job_id]


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
