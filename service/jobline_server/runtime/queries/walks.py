"""Walks over many jobs, in slices, with the loop free between two of them.

A live job is read from memory, by the blocks of ids of its queue; an ended one from the finished
file. How much a slice looks at is bounded, whatever it finds. What is pushed after a walk began is
not among what it meets, so a walk ends however much comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

from jobline_server.engine.items import Item, items_from
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, JobState, shard_of
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import (
    LOOKUP_JOBS,
    EndedJobs,
    Kept,
    LookupResult,
    kept_of_part,
    view_of,
)
from jobline_server.runtime.job_views import has_wanted_options, last_error, matches
from jobline_server.runtime.queries.ended_lists import ended_query
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.ended_store import EndedPart, EndedSpan

# A slice of a walk looks at so many live jobs, and hands out so many at most: what is done to them
# takes some 5 µs each. Looking alone takes a tenth of that.
SLICE_JOBS = 1_000
LOOK_IDS = 4_096
# A part of a lot costs as much as so many jobs more: what is done to a thousand lots of one job
# each, in queues of their own, takes 20 ms.
PART_JOBS = 4
# Members of a lot that are looked at between two looks at how many that are already.
RUN_JOBS_MAX = 1_000
# Ended jobs of a page of the finished file, whose rows are read on its thread.
PAGE_JOBS = 20_000


def asks_for_ended(wanted: JobFilter) -> bool:
    """Whether a condition is set that only ended jobs can meet."""
    return bool(
        wanted.reasons - {EndReason.NONE}
        or wanted.ended_after_ms is not None
        or wanted.ended_before_ms is not None
    )


def shards_of(core: Core, wanted: JobFilter) -> list[Shard]:
    """The shards that may have what a filter asks for."""
    return [core.shard_of_queue(wanted.queue)] if wanted.queue else list(core.shards)


def live_items(shard: Shard, wanted: JobFilter, after: int) -> Iterator[list[Item]]:
    """Single jobs and lots that may hold jobs above `after` that a filter lets through, by id, in
    slices.
    """
    queue = shard.queues.get(wanted.queue) if wanted.queue else None
    if wanted.queue and queue is None:
        return
    for found in items_from(shard, queue, after + 1, LOOK_IDS):
        yield [
            item
            for item in found
            if has_wanted_options(item.queue.name, item.options, item.pushed_ms, wanted)
        ]


def member_runs(lot: Lot, wanted: JobFilter, after: int) -> Iterator[range]:
    """Indexes of a lot's members above `after` that may be wanted: what was handed out stands
    before the cursor, what waits behind. The lot may change between two of them.
    """
    if wanted.error_type or wanted.error_contains:
        # Who has failed is no member of a lot any more.
        return
    waiting = lot.state
    start, stop = max(after + 1 - lot.first_id, 0), len(lot.payloads)
    if wanted.states and JobState.ACTIVE not in wanted.states:
        start = max(start, lot.cursor)
    if wanted.states and waiting not in wanted.states:
        stop = min(stop, lot.cursor)
    for at in range(start, stop, RUN_JOBS_MAX):
        yield range(at, min(at + RUN_JOBS_MAX, stop))


def is_wanted(job: Job, wanted: JobFilter) -> bool:
    """Whether a single job, whose options are wanted, meets the other conditions."""
    if wanted.states and job.state not in wanted.states:
        return False
    if not wanted.error_type and not wanted.error_contains:
        return True
    error = last_error(job)
    if error is None or (wanted.error_type and error.type != wanted.error_type):
        return False
    return wanted.error_contains in error.message


async def live_slices(shard: Shard, wanted: JobFilter) -> AsyncIterator[Mapping[int, JobState]]:
    """Live jobs that a filter lets through, with their states, at most `SLICE_JOBS` at a time. What
    became of them meanwhile is for the caller to look at.
    """
    if asks_for_ended(wanted):
        return
    found: dict[int, JobState] = {}
    looked = 0
    for items in live_items(shard, wanted, 0):
        for item in items:
            for ids in _parts(item, wanted):
                for job_id in ids:
                    state = shard.state_of(job_id)
                    if state is not None and (not wanted.states or state in wanted.states):
                        found[job_id] = state
                looked += len(ids) + (0 if isinstance(item, Job) else PART_JOBS)
                if looked >= SLICE_JOBS:
                    yield found
                    found, looked = {}, 0
                    await asyncio.sleep(0)
        await asyncio.sleep(0)
    yield found


def _parts(item: Item, wanted: JobFilter) -> Iterator[range]:
    if isinstance(item, Job):
        if is_wanted(item, wanted):
            yield range(item.id, item.id + 1)
        return
    first_id = item.first_id
    for indexes in member_runs(item, wanted, 0):
        yield range(first_id + indexes.start, first_id + indexes.stop)


class EndedWalk:
    """Ended jobs that a filter lets through, a page at a time: as `next_spans`, or with all that is
    kept of them as `next_looks`. Whoever changes them holds `EndedJobs.changing` around that and
    the commit of the change.
    """

    def __init__(self, core: Core, ended: EndedJobs, wanted: JobFilter) -> None:
        self._ended = ended
        self._wanted = wanted
        # Conditions on what only a job's record says.
        self._by_record = bool(
            wanted.headers
            or wanted.pushed_after_ms is not None
            or wanted.pushed_before_ms is not None
            or wanted.ended_after_ms is not None
        )
        self._after: int | None = 0
        self._end_ids = [shard.next_id() for shard in core.shards]

    @property
    def is_over(self) -> bool:
        """Whether there are no more pages."""
        return self._after is None

    async def next_spans(self) -> list[EndedSpan]:
        """What the next page holds, perhaps nothing."""
        if not self._by_record:
            return [
                EndedSpan(part.row.queue, part.row.state, part.first_id, part.count)
                for part in await self._next_parts()
            ]
        return [
            EndedSpan(one.record.queue, one.state, job_id, 1)
            async for look in self.next_looks()
            for job_id, one in look.kept.items()
        ]

    async def next_looks(self) -> AsyncIterator[LookupResult]:
        """The same, a bounded number of jobs of one shard at a time. What was read for the page is
        not read again for each of its jobs.
        """
        kept: dict[int, Kept] = {}
        shard = looked = 0
        for ids, part in _pieces(await self._next_parts()):
            looked += len(ids)
            if looked > LOOKUP_JOBS or shard_of(part.first_id) != shard:
                if kept:
                    yield LookupResult(list(kept), kept, frozenset())
                await asyncio.sleep(0)
                kept, shard, looked = {}, shard_of(part.first_id), len(ids)
            found = kept_of_part(part, ids)
            if self._by_record:
                found = {i: one for i, one in found.items() if matches(view_of(one), self._wanted)}
            kept.update(found)
        if kept:
            yield LookupResult(list(kept), kept, frozenset())

    async def _next_parts(self) -> list[EndedPart]:
        """Damaged jobs are left out, and said in the log."""
        if self._after is None:
            return []
        await self._ended.write()
        page = await self._ended.ended_store.list(ended_query(self._wanted, self._after, PAGE_JOBS))
        self._ended.damage.found(page.bad)
        ends = self._end_ids
        self._after = page.resume_after
        if self._after is not None and self._after >= ends[-1]:
            self._after = None
        return [part for part in page.parts if part.first_id < ends[shard_of(part.first_id)]]


def _pieces(parts: Iterable[EndedPart]) -> Iterator[tuple[range, EndedPart]]:
    """Parts, in pieces of at most `LOOKUP_JOBS` ids."""
    for part in parts:
        end_id = part.first_id + part.count
        for first_id in range(part.first_id, end_id, LOOKUP_JOBS):
            yield range(first_id, min(first_id + LOOKUP_JOBS, end_id)), part
