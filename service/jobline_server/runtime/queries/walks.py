"""Walks over many jobs in slices; the loop is free between two slices.

Live jobs are read from memory, by the blocks of ids of their queue; ended ones from the ended
store. The jobs checked per slice are bounded, however few match. A walk skips jobs pushed after it
began, so it ends however many are pushed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace

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
    weight_of,
)
from jobline_server.runtime.job_views import last_error, matches, may_have_wanted, members_wanted
from jobline_server.runtime.queries.ended_lists import RUN_JOBS, ended_query, is_search, may_match
from jobline_server.runtime.slots import ShardSlot, ShardSlots
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.ended_store import EndedPart, EndedSpan

# The most live jobs that a slice of a walk checks and returns: to change one takes some 5 µs, to
# check it a tenth of that.
SLICE_JOBS = 1_000
# Jobs that others wait for, each about a microsecond as one of those ends.
PARENTS_A_JOB = 4
LOOK_IDS = 4_096
# A part of a lot counts as this many jobs more: to change a thousand lots of one job each, in
# different queues, takes 20 ms.
PART_JOBS = 4
# The longest run of members of a lot; a slice is measured after each run.
RUN_JOBS_MAX = 1_000
# Ended jobs in a page of the ended store, which reads the rows on its thread.
PAGE_JOBS = 20_000


def asks_for_ended(wanted: JobFilter) -> bool:
    """Returns whether a filter has a condition that only ended jobs can meet."""
    return bool(
        wanted.reasons - {EndReason.NONE}
        or wanted.ended_after_ms is not None
        or wanted.ended_before_ms is not None
    )


def slots_of(core: Core, wanted: JobFilter) -> list[ShardSlot]:
    """Returns the slots that may have jobs of a filter."""
    return [core.slots.of_queue(wanted.queue)] if wanted.queue else list(core.slots)


def live_items(shard: Shard, wanted: JobFilter, after: int) -> Iterator[list[Item]]:
    """Yields single jobs and lots that may have jobs above `after` that pass a filter, by id, in
    slices.
    """
    queue = shard.queues.get(wanted.queue) if wanted.queue else None
    if wanted.queue and queue is None:
        return
    if wanted.batches and wanted.batches.isdisjoint(shard.batches.live):
        return
    for found in items_from(shard, queue, after + 1, LOOK_IDS):
        yield [item for item in found if may_have_wanted(item, wanted)]


def members_after(lot: Lot, wanted: JobFilter, after: int) -> range:
    """Returns the indexes of a lot's members above `after` that may pass a filter: members before
    the cursor were handed out, the others wait.
    """
    if wanted.error_type or wanted.error_contains:
        # A job that has failed is no member of a lot any more.
        return range(0)
    waiting = lot.state
    start, stop = max(after + 1 - lot.first_id, 0), len(lot.payloads)
    if wanted.states and JobState.ACTIVE not in wanted.states:
        start = max(start, lot.cursor)
    if wanted.states and waiting not in wanted.states:
        stop = min(stop, lot.cursor)
    return range(start, stop)


def member_runs(lot: Lot, wanted: JobFilter, after: int) -> Iterator[range]:
    """Yields the members of a lot that may pass a filter, some at a time. The lot may change
    between two runs.
    """
    members = members_after(lot, wanted, after)
    for at in range(members.start, members.stop, RUN_JOBS_MAX):
        yield range(at, min(at + RUN_JOBS_MAX, members.stop))


def is_wanted(job: Job, wanted: JobFilter) -> bool:
    """Returns whether a single job, whose options match, meets the other conditions."""
    if wanted.states and job.state not in wanted.states:
        return False
    if not wanted.error_type and not wanted.error_contains:
        return True
    error = last_error(job)
    if error is None or (wanted.error_type and error.type != wanted.error_type):
        return False
    return wanted.error_contains in error.message


async def live_slices(shard: Shard, wanted: JobFilter) -> AsyncIterator[Mapping[int, JobState]]:
    """Yields live jobs that pass a filter, with their states, about `SLICE_JOBS` at a time. They
    may change before the caller uses them.
    """
    if asks_for_ended(wanted):
        return
    found: dict[int, JobState] = {}
    checked = 0
    for items in live_items(shard, wanted, 0):
        for item in items:
            for count, ids in _parts(item, wanted):
                for job_id in ids:
                    state = shard.state_of(job_id)
                    if state is not None and (not wanted.states or state in wanted.states):
                        found[job_id] = state
                checked += count + (_listings_of(item) if isinstance(item, Job) else PART_JOBS)
                if checked >= SLICE_JOBS:
                    yield found
                    found, checked = {}, 0
                    await asyncio.sleep(0)
        await asyncio.sleep(0)
    yield found


def id_slices(slots: ShardSlots, ids: Iterable[int]) -> Iterator[list[int]]:
    """Yields jobs that were named by their ids, in order, as many at a time as are changed in one
    step. Looks at those of a slice when it is asked for it.
    """
    part: list[int] = []
    weight, lot = 0, None
    for job_id in ids:
        slot = slots.of_id(job_id)
        job = None if slot is None else slot.shard.jobs.find(job_id)
        lot_before, lot = lot, None if slot is None or job else slot.shard.lots.find(job_id)
        part.append(job_id)
        weight += 1 + (0 if job is None else _listings_of(job))
        weight += PART_JOBS if lot is not None and lot is not lot_before else 0
        if weight >= SLICE_JOBS:
            yield part
            part, weight = [], 0
    if part:
        yield part


def _listings_of(job: Job) -> int:
    """Returns as how many jobs the lists count in which a job is: its group's, and of a BLOCKED
    one those of the jobs that it waits for.
    """
    return len(job.details.parents_left) // PARENTS_A_JOB + bool(job.ties.group)


def _parts(item: Item, wanted: JobFilter) -> Iterator[tuple[int, Iterable[int]]]:
    """Yields how many jobs were checked, and the ids of those that may be wanted."""
    if isinstance(item, Job):
        if is_wanted(item, wanted):
            yield 1, (item.id,)
        return
    first_id = item.first_id
    for indexes in member_runs(item, wanted, 0):
        yield len(indexes), [first_id + index for index in members_wanted(item, indexes, wanted)]


class EndedWalk:
    """Walks over ended jobs that pass a filter, a page at a time: `next_spans` returns their ids,
    `next_records` also their records. A caller that changes them must hold `EndedJobs.changing`
    until the change is committed.
    """

    def __init__(self, core: Core, ended: EndedJobs, wanted: JobFilter) -> None:
        self._ended = ended
        self._wanted = wanted
        # Conditions on fields that only a job's record has.
        self._by_record = is_search(wanted) or wanted.ended_after_ms is not None
        self._after: int | None = 0
        self._of_waiting = True
        self._end_ids = {slot.number: slot.shard.next_id() for slot in core.slots}

    @property
    def is_over(self) -> bool:
        """Returns whether there are no more pages."""
        return self._after is None

    async def next_spans(self) -> list[EndedSpan]:
        """Returns the next page as spans of ids, which may be empty."""
        if not self._by_record:
            return [
                EndedSpan(part.row.queue, part.row.state, part.first_id, part.count)
                for part in await self._next_parts()
            ]
        return [
            EndedSpan(kept.record.queue, kept.state, job_id, 1)
            async for found in self.next_records()
            for job_id, kept in found.kept.items()
        ]

    async def next_records(self) -> AsyncIterator[LookupResult]:
        """Yields the next page with the records of its jobs, up to `LOOKUP_JOBS` jobs of one shard
        at a time, fewer if they have many parents. The records are those read for the page.
        """
        kept: dict[int, Kept] = {}
        shard = checked = 0
        for ids, part in _cut_parts(await self._next_parts()):
            if checked + len(ids) > LOOKUP_JOBS or shard_of(part.first_id) != shard:
                if kept:
                    yield LookupResult(list(kept), kept, frozenset())
                await asyncio.sleep(0)
                kept, shard, checked = {}, shard_of(part.first_id), 0
            if not may_match(part, self._wanted):
                checked += min(len(ids), RUN_JOBS)
                continue
            found = kept_of_part(part, ids)
            checked += weight_of(found.values())
            if self._by_record:
                found = {
                    job_id: job
                    for job_id, job in found.items()
                    if matches(view_of(job), self._wanted)
                }
            kept.update(found)
        if kept:
            yield LookupResult(list(kept), kept, frozenset())

    async def _next_parts(self) -> list[EndedPart]:
        """Returns the next page of parts: before those of the store come those that wait for room
        in it, and may be written meanwhile. Leaves out damaged jobs, and logs them.
        """
        if self._after is None:
            return []
        await self._ended.write()
        ends = self._end_ids
        query = ended_query(self._wanted, self._after, PAGE_JOBS)
        parts = []
        if self._of_waiting:
            async with self._ended.writing:
                parts = await self._ended.writer.waiting(query)
        if parts:
            self._after = parts[-1].first_id + parts[-1].count - 1
        else:
            query = replace(query, after_id=0) if self._of_waiting else query
            self._of_waiting = False
            page = await self._ended.page(query, of_search=is_search(self._wanted))
            parts, self._after = page.parts, page.resume_after
            if self._after is not None and self._after >= max(ends.values(), default=0):
                self._after = None
        return [part for part in parts if part.first_id < ends.get(shard_of(part.first_id), 0)]


def _cut_parts(parts: Iterable[EndedPart]) -> Iterator[tuple[range, EndedPart]]:
    """Yields (ids, part), cutting parts of more than `LOOKUP_JOBS` ids."""
    for part in parts:
        end_id = part.first_id + part.count
        for first_id in range(part.first_id, end_id, LOOKUP_JOBS):
            yield range(first_id, min(first_id + LOOKUP_JOBS, end_id)), part
