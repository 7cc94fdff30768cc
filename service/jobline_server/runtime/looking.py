"""Looking at jobs: one, a page of many, and why one is not running.

Live jobs are read from memory, ended ones from the finished file. Walks over many live jobs go in
slices, so that the loop never stands still for them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.job import Job
from jobline_server.engine.keys import JOB_KEY, hash_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import ENDED_STATES, EndReason, JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import EndedJobs
from jobline_server.runtime.shown import in_lot, live_view, matches
from jobline_server.runtime.views import JobFilter, JobView


class Looking:
    """Reads jobs, live and ended."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended

    async def get_job(self, job_id: int) -> JobView:
        """One job by id. Raises `Refused` with JOB_NOT_FOUND."""
        live = self.live(job_id)
        if live is not None:
            return live
        await self._core.commits.wait()
        view = await self._ended.view(job_id)
        if view is None:
            raise Refused(RefusalKind.JOB_NOT_FOUND, f"there is no job {job_id}", field="id")
        return view

    async def get_job_by_key(self, queue: str, key: str) -> JobView:
        """One job by its idempotency key. Raises `Refused` with JOB_NOT_FOUND."""
        shard = self._core.shard_of_queue(queue)
        record = shard.keys.find(hash_of(JOB_KEY, queue, key.encode()), self._core.now().wall_ms)
        if record is None:
            message = f"no job of queue {queue} is known by this key"
            raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="job_key.key")
        return await self.get_job(record.first_id)

    def live(self, job_id: int) -> JobView | None:
        """A job that has not ended."""
        shard = self._core.shard_of_id(job_id)
        if shard is None or shard.state_of(job_id) is None:
            return None
        owner = shard.jobs.get(job_id) or shard.lots.find(job_id)
        now = self._core.now()
        if isinstance(owner, Lot):
            return in_lot(owner, job_id - owner.first_id, now)
        return None if owner is None else live_view(owner, now)

    async def list_jobs(
        self, wanted: JobFilter, *, page_size: int, page_token: str, include_payloads: bool
    ) -> tuple[list[JobView], str]:
        """A page of jobs by id, and the token of the next one, "" on the last."""
        after = _parse_token(page_token)
        views = await self.first_after(wanted, after, page_size)
        token = str(views[-1].id) if len(views) == page_size else ""
        if not include_payloads:
            for view in views:
                view.payload_bytes = len(view.payload)
                view.payload = view.checkpoint = view.result = b""
        return views, token

    async def first_after(self, wanted: JobFilter, after: int, count: int) -> list[JobView]:
        """The first `count` jobs with ids above `after`, in order of id."""
        found: list[JobView] = []
        ended_only = bool(wanted.states) and not wanted.states - ENDED_STATES - {JobState.STALE}
        if not ended_only and not _asks_for_ended(wanted):
            found = await self._live_after(wanted, after, count)
        if not wanted.states or wanted.states & (ENDED_STATES | {JobState.STALE}):
            # After the look at what lives: what had just ended then is on the shelf now.
            await self._core.commits.wait()
            found += await self._ended.first_after(wanted, after, count)
        # A job that was put back or ended between the two looks is shown once, as it was seen
        # first.
        by_id = {view.id: view for view in reversed(found)}
        return [by_id[job_id] for job_id in heapq.nsmallest(count, by_id)]

    async def _live_after(self, wanted: JobFilter, after: int, count: int) -> list[JobView]:
        now = self._core.now()
        found: list[JobView] = []
        shards = self._core.shards
        if wanted.queue:
            shards = [self._core.shard_of_queue(wanted.queue)]
        for shard in shards:
            found += [view async for view in _in_lots(shard, wanted, after, count, now)]
            found += [live_view(job, now) async for job in _singles(shard, wanted, after, count)]
        return heapq.nsmallest(count, found, key=lambda view: view.id)


def _asks_for_ended(wanted: JobFilter) -> bool:
    """Whether a condition is set that only ended jobs can meet."""
    return bool(
        wanted.reasons - {EndReason.NONE}
        or wanted.ended_after_ms is not None
        or wanted.ended_before_ms is not None
    )


def _parse_token(token: str) -> int:
    if not token:
        return 0
    if not token.isdecimal() or len(token) > 16:
        raise Refused(
            RefusalKind.INVALID_PAGE_TOKEN,
            "page_token is not one of this list's",
            field="page_token",
        )
    return int(token)


async def _in_lots(
    shard: Shard, wanted: JobFilter, after: int, count: int, now: Now
) -> AsyncIterator[JobView]:
    """Members of lots above an id, in order, at most `count`."""
    looked = 0
    for first_id in shard.lots.first_ids_after(after):
        lot = shard.lots.lots.get(first_id)
        if lot is None or (wanted.queue and lot.queue.name != wanted.queue):
            continue
        for index in _live_indexes(lot, max(after + 1 - first_id, 0)):
            looked += 1
            view = in_lot(lot, index, now)
            if view is not None and matches(view, wanted):
                yield view
                count -= 1
                if not count:
                    return
        if looked > limits.SLICE_ITEMS:
            looked = 0
            await asyncio.sleep(0)


def _live_indexes(lot: Lot, start: int) -> Iterator[int]:
    for index in range(start, len(lot.payloads)):
        lease = lot.lease_at(index)
        if lot.is_waiting(index) or (lease is not None and lease.is_open(index)):
            yield index


async def _singles(shard: Shard, wanted: JobFilter, after: int, count: int) -> AsyncIterator[Job]:
    """Single jobs above an id, in order, at most `count`; they stand in no order, so all are
    looked at.
    """
    best: list[int] = []
    now = Now(0, 0)
    for looked, (job_id, job) in enumerate(list(shard.jobs.items())):
        if looked % limits.SLICE_ITEMS == limits.SLICE_ITEMS - 1:
            await asyncio.sleep(0)
        if job_id <= after or (wanted.queue and job.queue.name != wanted.queue):
            continue
        if len(best) == count and job_id > -best[0]:
            continue
        if not matches(live_view(job, now), wanted):
            continue
        heapq.heappush(best, -job_id)
        if len(best) > count:
            heapq.heappop(best)
    for job_id in sorted(-negative for negative in best):
        job_now = shard.jobs.get(job_id)
        if job_now is not None:
            yield job_now
