"""Ended jobs: what the finished file keeps, and the way there.

Endings of committed turns gather on the shelf and are written once a second, without fsync: the
journal still tells of them until a checkpoint, which calls `sync` first. Whoever reads has the
shelf written before, so nothing that ended is overlooked.

Ended jobs are put back, aged and deleted by facts, as everything is. Whoever does that holds
`changing` from the look to the commit, so that no two callers decide on the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from jobline_server.engine.decide.admin import decide_delete_ended, decide_stale
from jobline_server.engine.entries import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.commits import Turn
from jobline_server.runtime.damage import Damage, damaged
from jobline_server.runtime.ended_places import EndedPlaces
from jobline_server.runtime.shown import ended_view
from jobline_server.runtime.views import JobView
from jobline_server.storage.codec import record_of, records_of
from jobline_server.storage.finished import (
    EndedLook,
    EndedOp,
    EndedRow,
    EndedSpan,
    Finished,
)
from jobline_server.storage.shelf import Shelf, Taken
from jobline_server.storage.store import DataLoss, DiskFull

if TYPE_CHECKING:
    from jobline_server.runtime.core import Core

# Of the jobs that a queue completes meanwhile only those are written that it keeps: at a million a
# second a tenth. Written four times a second, a drain takes half as long again.
WRITE_SECONDS = 1.0
# Jobs that one look at the finished file asks for: reading them takes some milliseconds.
LOOK_JOBS = 500

Runs = Sequence[tuple[int, int]]
Decide = Callable[[Shard, Now, str, JobState, Runs], None]


class Kept(NamedTuple):
    """An ended job that is kept: where it stands, STALE perhaps, and how it ended."""

    state: JobState
    outcome: JobState
    record: JobRecord


class Look(NamedTuple):
    """Jobs that were looked up, those of them that are kept, and those that cannot be read."""

    ids: Sequence[int]
    kept: Mapping[int, Kept]
    damaged: frozenset[int]


class EndedJobs:
    """The finished file and its shelf."""

    def __init__(self, core: Core, finished: Finished) -> None:
        self._core = core
        self.finished = finished
        self.damage = Damage()
        self.places = EndedPlaces()
        self._shelf = Shelf()
        self._pieces: Iterator[Taken] = iter(())
        self._unwritten: list[EndedOp] = []
        self._writing = asyncio.Lock()
        self._stopping = asyncio.Event()
        self.changing = asyncio.Lock()

    # Keeping.

    def told(self, turns: Sequence[Turn]) -> None:
        """Takes what ended onto the shelf, behind what it did not take before."""
        try:
            self._shelf.add(ending for turn in turns for ending in turn.endings)
        except Exception as error:
            if self._shelf.is_line_too_long():
                self._core.commits.fail(error)
            raise

    async def step(self) -> bool:
        """Waits a second and writes; returns whether to go on, which `stop` ends."""
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            await self.write()
        return not self._stopping.is_set()

    def stop(self) -> None:
        """Ends the loop after the write that is under way."""
        self._stopping.set()

    async def write(self) -> None:
        """Writes what is on the shelf, before it returns, and waits for room if the disk is full. A
        caller that is cancelled stops waiting, but not the write.
        """
        writing = self._core.commits.until_room(self._write)
        await asyncio.shield(asyncio.ensure_future(writing))

    async def _write(self) -> None:
        """One try, in pieces of some milliseconds. What a full disk kept out in an earlier try is
        nowhere else: it goes before what came later. After any other failure nobody knows what
        reached the file, and only a start reads the journal again: the process stops.
        """
        async with self._writing:
            # While the shelf takes nothing, nobody may believe that all is written.
            self._shelf.add(())
            try:
                await self._write_pieces()
                self._pieces = self._shelf.slices()
                await self._write_pieces()
            except DiskFull:
                raise
            except Exception as error:
                self._core.commits.fail(error)
                raise

    async def _write_pieces(self) -> None:
        """Writes what was taken off the shelf. Completed jobs that are more than their queue keeps
        never reach the file: the engine is told that they are deleted.
        """
        await self._put(self._unwritten)
        for ops, trimmed in self._pieces:
            for trim in trimmed:
                self._decide(decide_delete_ended, trim.queue, trim.state, trim.runs)
            await self._put(ops)
            await asyncio.sleep(0)

    async def _put(self, ops: list[EndedOp]) -> None:
        self._unwritten = ops
        self.places.note(ops)
        if ops:
            await self.finished.write(ops)
        self._unwritten = []

    async def sync(self) -> None:
        """Makes everything that has ended so far durable in the finished file. Raises
        `DiskFull`.
        """
        await self._write()
        await self.finished.sync()

    # Looking.

    async def find(self, job_id: int) -> Kept | None:
        """One job, if it has ended and is kept. Raises `Refused` with DATA_LOSS if what is kept of
        it is damaged.
        """
        if self._core.shard_of_id(job_id) is None:
            return None
        await self.write()
        try:
            row = await self.finished.get(job_id)
        except DataLoss:
            self.damage.found([(job_id, 1)])
            raise damaged(job_id) from None
        return None if row is None else kept_of(row, record_of(row, job_id))

    async def look_up(self, job_ids: Sequence[int]) -> AsyncIterator[Look]:
        """Many jobs, a part at a time, each once and in order of id: they are found fastest so.
        What had ended before is seen, however lately.
        """
        in_order = sorted(set(job_ids))
        known = [job_id for job_id in in_order if self._core.shard_of_id(job_id) is not None]
        if len(known) < len(in_order):
            # The largest numbers that no shard gave do not even fit into a row.
            ours = set(known)
            yield Look([job_id for job_id in in_order if job_id not in ours], {}, frozenset())
        if known:
            await self.write()
        while known:
            found = await self.finished.get_many(known[:LOOK_JOBS])
            looked, known = known[: found.looked], known[found.looked :]
            self.damage.found((job_id, 1) for job_id in found.bad)
            yield Look(looked, _kept(found), frozenset(found.bad))

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
        for (queue, state), runs in _by_place(spans).items():
            self._decide(decide, queue, state, runs)
        await self._core.commits.wait()
        return sum(span.count for span in spans)

    def _decide(self, decide: Decide, queue: str, state: JobState, runs: Runs) -> None:
        shard = self._core.shard_of_queue(queue)
        decide(shard, self._core.now(), queue, state, runs)
        self._core.decided(shard)


def _kept(found: EndedLook) -> dict[int, Kept]:
    kept: dict[int, Kept] = {}
    # Neighbours share one row, which is read once for all of them.
    for _, part in groupby(found.rows.items(), lambda item: id(item[1])):
        neighbours = dict(part)
        row = next(iter(neighbours.values()))
        for record in records_of(row, neighbours):
            kept[record.id] = kept_of(row, record)
    return kept


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
