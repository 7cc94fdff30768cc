"""Ended jobs: what the finished file keeps, and what waits to get there.

Whoever reads has what ended written before, so nothing is overlooked. On a full disk that cannot
be: then jobs are found by id all the same, and lists are those of the file.

Ended jobs are put back, aged and deleted by facts, as everything is. Whoever does that holds
`changing` from the look to the commit, so that no two callers decide on the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from jobline_server.engine.decide.admin import decide_delete_ended, decide_stale
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.damage import Damage, damaged
from jobline_server.runtime.ended.writer import EndedWriter
from jobline_server.runtime.job_views import ended_view
from jobline_server.runtime.views import JobView
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedLookup,
    EndedPart,
    EndedRow,
    EndedSpan,
)
from jobline_server.storage.store import DataLoss

# Jobs that one look at the finished file asks for: reading them takes some milliseconds.
LOOKUP_JOBS = 250

Runs = Sequence[tuple[int, int]]
Decide = Callable[[Shard, Now, str, JobState, Runs], None]


class Kept(NamedTuple):
    """An ended job that is kept: where it stands, STALE perhaps, and how it ended."""

    state: JobState
    outcome: JobState
    record: JobRecord


class LookupResult(NamedTuple):
    """Jobs that were looked up, those of them that are kept, and those that cannot be read."""

    ids: Sequence[int]
    kept: Mapping[int, Kept]
    damaged: frozenset[int]


class EndedJobs:
    """The finished file, and its writer."""

    def __init__(self, core: Core, ended_store: EndedJobStore) -> None:
        self._core = core
        self.ended_store = ended_store
        self.writer = writer = EndedWriter(core, ended_store)
        self.write = writer.write
        self.damage = Damage()
        self.places = writer.hints
        self.changing = asyncio.Lock()

    # Looking.

    async def find(self, job_id: int) -> Kept | None:
        """One job, if it has ended and is kept. Raises `Refused` with DATA_LOSS if what is kept of
        it is damaged.
        """
        if self._core.slots.of_id(job_id) is None:
            return None
        await self.write()
        waiting = self.writer.find([job_id])
        try:
            row = waiting[job_id] if waiting else await self.ended_store.get(job_id)
        except DataLoss:
            self.damage.found([(job_id, 1)])
            raise damaged(job_id) from None
        return None if row is None else kept_of(row, record_of(row, job_id))

    async def look_up(self, job_ids: Sequence[int]) -> AsyncIterator[LookupResult]:
        """Many jobs, a part at a time, each once and in order of id: they are found fastest so.
        What had ended before is seen, however lately.
        """
        in_order = sorted(set(job_ids))
        known = [job_id for job_id in in_order if self._core.slots.find_by_id(job_id) is not None]
        if len(known) < len(in_order):
            # The largest numbers that no shard gave out do not even fit into a row.
            ours = set(known)
            yield LookupResult(
                [job_id for job_id in in_order if job_id not in ours], {}, frozenset()
            )
        if known:
            await self.write()
        while known:
            waiting = self.writer.find(known[:LOOKUP_JOBS])
            found = await self.ended_store.get_many(known[:LOOKUP_JOBS])
            looked, known = known[: found.looked], known[found.looked :]
            self.damage.found((job_id, 1) for job_id in found.bad)
            yield LookupResult(
                looked, _kept(found) | _kept_later(waiting, looked), frozenset(found.bad)
            )

    async def view(self, job_id: int) -> JobView | None:
        """An ended job, as operators see it. Raises `Refused` as `find` does."""
        kept = await self.find(job_id)
        return None if kept is None else view_of(kept)

    # Ageing; the caller holds `changing`.

    async def make_stale(self, spans: Sequence[EndedSpan]) -> int:
        """Ended jobs become STALE; returns how many, after the commit."""
        return await self._change(spans, decide_stale)

    async def delete(self, spans: Sequence[EndedSpan], why: Decide = decide_delete_ended) -> int:
        """Ended jobs are deleted; returns how many, after the commit."""
        return await self._change(spans, why)

    async def _change(self, spans: Sequence[EndedSpan], decide: Decide) -> int:
        """A fact a queue and state, and one commit for all of them."""
        for number, ((queue, state), runs) in enumerate(_by_place(spans).items(), 1):
            self._decide(decide, queue, state, runs)
            if number % LOOKUP_JOBS == 0:
                await asyncio.sleep(0)
        await self._core.commits.wait()
        return sum(span.count for span in spans)

    def _decide(self, decide: Decide, queue: str, state: JobState, runs: Runs) -> None:
        slot = self._core.slots.of_queue(queue)
        decide(slot.shard, self._core.now(), queue, state, runs)
        self._core.after_decision(slot)


def _kept(found: EndedLookup) -> dict[int, Kept]:
    kept: dict[int, Kept] = {}
    # Neighbours share one row, which is read once for all of them.
    for _, part in groupby(found.rows.items(), lambda item: id(item[1])):
        neighbours = dict(part)
        row = next(iter(neighbours.values()))
        for record in records_of(row, neighbours):
            kept[record.id] = kept_of(row, record)
    return kept


def _kept_later(waiting: Mapping[int, EndedRow | None], looked: Sequence[int]) -> dict[int, Kept]:
    """Jobs that were put back and ended again have another record in the file; what was deleted is
    not in it any more."""
    return {
        job_id: kept_of(row, record_of(row, job_id))
        for job_id, row in waiting.items()
        if row is not None and job_id <= looked[-1]
    }


def kept_of_part(part: EndedPart, ids: Iterable[int]) -> dict[int, Kept]:
    """Some jobs of a part, by id."""
    return {one.id: kept_of(part.row, one) for one in records_of(part.row, ids)}


def kept_of(row: EndedRow, record: JobRecord) -> Kept:
    """A job of a row."""
    return Kept(JobState(row.state), JobState(row.former_state or row.state), record)


def view_of(kept: Kept) -> JobView:
    """An ended job, as operators see it."""
    stale_from = kept.outcome if kept.state is JobState.STALE else None
    return ended_view(kept.state, kept.record, stale_from)


def _by_place(spans: Sequence[EndedSpan]) -> dict[tuple[str, JobState], list[tuple[int, int]]]:
    """Spans as runs of ids, by queue and state."""
    places: dict[tuple[str, JobState], list[tuple[int, int]]] = {}
    for span in spans:
        runs = places.setdefault((span.queue, JobState(span.state)), [])
        runs.append((span.first_id, span.count))
    return places
