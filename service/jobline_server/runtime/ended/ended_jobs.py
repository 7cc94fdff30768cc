"""Finds and changes ended jobs, in the ended store and on their way to it.

Before a read everything that has ended is written, so that nothing is missed; only retention looks
at the newest later. A full disk may prevent that: then jobs are still found by id, and by those who
delete or evict, and lists have what was written.

Ended jobs are retried, aged and deleted by facts, as all jobs are. A caller holds `changing` from
its query to the commit of its facts, so that no two callers decide on the same job.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import nullcontext
from itertools import groupby
from typing import NamedTuple

from jobline_server.engine import effective
from jobline_server.engine.decide.admin import decide_age_out, decide_delete_ended
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import Damage, damaged
from jobline_server.runtime.ended.retention_hints import QueueState
from jobline_server.runtime.ended.writer import EndedWriter
from jobline_server.runtime.job_views import ended_view
from jobline_server.runtime.views import JobView
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedLookup,
    EndedPage,
    EndedPart,
    EndedQuery,
    EndedRow,
    EndedSpan,
)
from jobline_server.storage.store import DataLoss

# Jobs per look-up in the ended store: to read them takes some milliseconds.
LOOKUP_JOBS = 250
# Jobs that a job waited for cost as much as a job more: to read them and want their results again.
PARENTS_A_JOB = 50

Runs = Sequence[tuple[int, int]]
Decide = Callable[[Shard, Now, str, JobState, Runs], None]


class Kept(NamedTuple):
    """An ended job that is kept: its state, perhaps STALE, the state in which it ended, its
    record, and when it is deleted if it is STALE.
    """

    state: JobState
    outcome: JobState
    record: JobRecord
    delete_ms: int = 0


class LookupResult(NamedTuple):
    """Ids that were looked up, the jobs among them that are kept, and the ids that are damaged."""

    ids: Sequence[int]
    kept: Mapping[int, Kept]
    damaged: frozenset[int]


class EndedJobs:
    """The ended store, and its writer."""

    def __init__(self, core: Core, ended_store: EndedJobStore) -> None:
        self._core = core
        self.ended_store = ended_store
        self.writer = writer = EndedWriter(core, ended_store)
        self.write = writer.write
        self.write_changes = writer.write_changes
        self.waiting_of = writer.waiting_of
        self.writing = writer.writing
        self.damage = Damage()
        self.hints = writer.hints
        self.changing = asyncio.Lock()
        self._searching = asyncio.Lock()

    # Reads.

    async def page(self, query: EndedQuery, *, of_search: bool) -> EndedPage:
        """Returns a page of a list, and logs damaged jobs. A search, whose conditions are not in
        columns, may pass all jobs for one that it wants. So its pages come one at a time, in the
        order in which they are asked for: however many searches there are, other reads of the ended
        store wait for one page at most.
        """
        async with self._searching if of_search else nullcontext():
            page = await self.ended_store.list(query)
        self.damage.found(page.bad)
        return page

    async def find(self, job_id: int) -> Kept | None:
        """Returns a job if it has ended and is kept. Raises `Refused` with DATA_LOSS if it is
        damaged.
        """
        if self._core.slots.of_id(job_id) is None:
            return None
        await self.write()
        waiting = self.writer.find([job_id])
        row = waiting[job_id] if waiting else await self._row_of(job_id)
        return None if row is None else kept_of(row, record_of(row, job_id))

    async def _row_of(self, job_id: int) -> EndedRow | None:
        try:
            found = await self.ended_store.get_many([job_id])
        except DataLoss:
            bad = True
        else:
            bad = bool(found.bad)
        if bad:
            self.damage.found([(job_id, 1)])
            raise damaged(job_id)
        return found.rows.get(job_id)

    async def look_up(
        self, job_ids: Sequence[int], *, are_written: bool = False
    ) -> AsyncIterator[LookupResult]:
        """Yields look-ups of many jobs, each job once, by id; the loop is free in between. Sees all
        jobs that ended before the call; `are_written`: only what the ended store has of them, for a
        caller that has just found them there.
        """
        in_order = sorted(set(job_ids))
        known = [job_id for job_id in in_order if self._core.slots.find_by_id(job_id) is not None]
        if len(known) < len(in_order):
            # Ids of no shard may be too large for the ended store.
            ours = set(known)
            yield LookupResult(
                [job_id for job_id in in_order if job_id not in ours], {}, frozenset()
            )
        if known and not are_written:
            await self.write()
        while known:
            waiting = self.writer.find(known[:LOOKUP_JOBS])
            found = await self.ended_store.get_many(known[:LOOKUP_JOBS])
            looked, known = known[: found.looked], known[found.looked :]
            self.damage.found((job_id, 1) for job_id in found.bad)
            for number, look in enumerate(_in_parts(looked, found, waiting)):
                if number:
                    await asyncio.sleep(0)
                yield look

    async def view(self, job_id: int) -> JobView | None:
        """Returns an ended job as operators see it. Raises `Refused` as `find` does."""
        kept = await self.find(job_id)
        return None if kept is None else self.dated(view_of(kept))

    def dated(self, view: JobView) -> JobView:
        """Adds to the view of a dead job when it is put back by itself and when it expires, by the
        settings that its queue has now.
        """
        queue = self._core.slots.find_queue(view.queue)
        if view.state is not JobState.DEAD or queue is None:
            return view
        if queue.settings.dead_letters.auto_retry is None:
            view.retry_ms = 0
        age_ms = view.options.retention.age_ms
        age_ms = effective.dead_age_ms(queue.settings) if age_ms is None else age_ms
        view.expires_ms = 0 if age_ms is None else view.ended_ms + age_ms
        return view

    # Changes; the caller holds `changing`.

    async def make_stale(self, spans: Sequence[EndedSpan]) -> int:
        """Makes ended jobs STALE; returns how many, after the commit."""
        return await self._change(spans, decide_age_out)

    async def delete(self, spans: Sequence[EndedSpan], why: Decide = decide_delete_ended) -> int:
        """Deletes ended jobs; returns how many, after the commit."""
        return await self._change(spans, why)

    async def _change(self, spans: Sequence[EndedSpan], decide: Decide) -> int:
        """Emits a fact per queue and state, and waits for one commit of all of them. Skips queues
        that are not here; returns how many jobs were changed.
        """
        changed = 0
        for number, ((queue, state), runs) in enumerate(_by_queue_state(spans).items(), 1):
            changed += self._decide(decide, queue, state, runs)
            if number % LOOKUP_JOBS == 0:
                await asyncio.sleep(0)
        await self._core.commits.wait()
        return changed

    def _decide(self, decide: Decide, queue: str, state: JobState, runs: Runs) -> int:
        slot = self._core.slots.find_by_queue(queue)
        if slot is None:
            return 0
        decide(slot.shard, self._core.now(), queue, state, runs)
        self._core.after_decision(slot)
        return sum(count for _, count in runs)


def _in_parts(
    looked: Sequence[int], found: EndedLookup, waiting: Mapping[int, EndedRow | None]
) -> Iterator[LookupResult]:
    """Yields what was found, fewer jobs at a time if they have many parents: each part is read when
    it is asked for. Of a job that waits to be written, as it was retried and ended again, the store
    may have an older record.
    """
    rows = {
        job_id: row
        for job_id in looked
        if (row := waiting.get(job_id) or found.rows.get(job_id)) is not None
    }
    kept: dict[int, Kept] = {}
    weight = start = 0
    # A row of several jobs is read once for all of them.
    for _, part in groupby(rows.items(), lambda item: id(item[1])):
        if weight >= LOOKUP_JOBS:
            end = bisect_right(looked, max(kept), start)
            yield _result(looked[start:end], kept, found.bad)
            kept, weight, start = {}, 0, end
        together = dict(part)
        row = next(iter(together.values()))
        kept |= {record.id: kept_of(row, record) for record in records_of(row, together)}
        weight += weight_of([kept[job_id] for job_id in together])
    yield _result(looked[start:], kept, found.bad)


def _result(ids: Sequence[int], kept: Mapping[int, Kept], bad: Collection[int]) -> LookupResult:
    return LookupResult(ids, kept, frozenset(bad).intersection(ids))


def weight_of(jobs: Collection[Kept]) -> int:
    """Returns as how many jobs these count where jobs are changed some at a time."""
    return len(jobs) + sum([len(kept.record.ties.parents) for kept in jobs]) // PARENTS_A_JOB


def kept_of_part(part: EndedPart, ids: Iterable[int]) -> dict[int, Kept]:
    """Returns some jobs of a part, by id."""
    return {one.id: kept_of(part.row, one) for one in records_of(part.row, ids)}


def kept_of(row: EndedRow, record: JobRecord) -> Kept:
    """Returns a job of a row."""
    outcome = JobState(row.former_state or row.state)
    return Kept(JobState(row.state), outcome, record, row.delete_ms)


def view_of(kept: Kept) -> JobView:
    """Returns an ended job as operators see it."""
    stale_from = kept.outcome if kept.state is JobState.STALE else None
    view = ended_view(kept.state, kept.record, stale_from)
    view.delete_ms = kept.delete_ms
    return view


def _by_queue_state(spans: Sequence[EndedSpan]) -> dict[QueueState, list[tuple[int, int]]]:
    """Returns spans as runs of ids, by queue and state."""
    found: dict[QueueState, list[tuple[int, int]]] = {}
    for span in spans:
        runs = found.setdefault((span.queue, JobState(span.state)), [])
        runs.append((span.first_id, span.count))
    return found
