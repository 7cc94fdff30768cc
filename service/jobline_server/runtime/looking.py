"""Looking at jobs: one, a page of many, and why one is not running.

Live jobs are read from memory, ended ones from the finished file. Walks over many live jobs go in
slices, so that the loop never stands still for them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.job import Job
from jobline_server.engine.keys import JOB_KEY, hash_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import KEPT_STATES, EndReason, JobState
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import EndedJobs
from jobline_server.runtime.listing import Piece, page_of
from jobline_server.runtime.shown import has_wanted_options, in_lot, live_view, matches
from jobline_server.runtime.views import JobFilter, JobView

# Members of a lot that are looked at between two looks at how many that are already.
STRETCH = 1_000


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
        aged_ms = shard.age.at(self._core.now())
        record = shard.keys.find(hash_of(JOB_KEY, queue, key.encode()), aged_ms)
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
        clock = self._core.clock
        if isinstance(owner, Lot):
            return in_lot(owner, job_id - owner.first_id, clock)
        return None if owner is None else live_view(owner, clock)

    async def list_jobs(
        self, wanted: JobFilter, *, page_size: int, page_token: str, include_payloads: bool
    ) -> tuple[list[JobView], str]:
        """A page of jobs by id, and the token of the next one, "" on the last. A page may end
        early, with one job at least, for the bytes that it shows.
        """
        after = _parse_token(page_token)
        views, is_cut = await self.first_after(
            wanted, after, page_size, with_payloads=include_payloads
        )
        return views, str(views[-1].id) if is_cut else ""

    async def first_after(
        self, wanted: JobFilter, after: int, count: int, *, with_payloads: bool = False
    ) -> tuple[list[JobView], bool]:
        """The first jobs with ids above `after`, in order of id, `count` at most; and whether there
        may be more.
        """
        pieces: list[Piece] = []
        if (not wanted.states or wanted.states - KEPT_STATES) and not _asks_for_ended(wanted):
            pieces = await self._live_after(wanted, after, count, with_payloads=with_payloads)
        if not wanted.states or wanted.states & KEPT_STATES:
            # After the look at what lives: what had just ended then is on the shelf now.
            await self._core.commits.wait()
            piece = Piece(count, with_payloads=with_payloads)
            await self._ended.fill(piece, wanted, after)
            pieces.append(piece)
        # A job that was put back or ended between the two looks is shown once, as it was seen
        # first.
        return page_of(pieces, count)

    async def _live_after(
        self, wanted: JobFilter, after: int, count: int, *, with_payloads: bool
    ) -> list[Piece]:
        """Of each shard the members of lots, and the single jobs."""
        clock, shards = self._core.clock, self._core.shards
        pieces: list[Piece] = []
        if wanted.queue:
            shards = [self._core.shard_of_queue(wanted.queue)]
        for shard in shards:
            for fill in (_fill_from_lots, _fill_from_singles):
                piece = Piece(count, with_payloads=with_payloads)
                await fill(piece, shard, wanted, after, clock)
                pieces.append(piece)
        return pieces


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
            "is not one of this list's",
            field="page_token",
        )
    return int(token)


async def _fill_from_lots(
    piece: Piece, shard: Shard, wanted: JobFilter, after: int, clock: Clock
) -> None:
    """Members of lots above an id, in order."""
    if wanted.error_type or wanted.error_contains:
        # Who has failed is no member of a lot any more.
        return
    looked = 0
    for lot, indexes in _places(shard, wanted, after):
        for index in indexes:
            view = in_lot(lot, index, clock)
            if view is not None and matches(view, wanted):
                piece.add(view)
                if piece.is_full:
                    return
        looked += 1 + len(indexes)
        if looked >= limits.SLICE_ITEMS:
            looked = 0
            await asyncio.sleep(0)


def _places(shard: Shard, wanted: JobFilter, after: int) -> Iterator[tuple[Lot, range]]:
    """Where lots may have members with ids above `after` that are wanted, in order, a bounded
    stretch at a time; an empty one of a lot that has none. Lots may change between two stretches.
    """
    for lot in _lots_after(shard, after):
        stretch = range(max(after + 1 - lot.first_id, 0), len(lot.payloads))
        if has_wanted_options(lot.queue.name, lot.options, lot.pushed_ms, wanted):
            stretch = _in_states(lot, stretch, wanted.states)
        else:
            stretch = range(0)
        yield lot, stretch[:STRETCH]
        for at in range(STRETCH, len(stretch), STRETCH):
            yield lot, stretch[at : at + STRETCH]


def _lots_after(shard: Shard, after: int) -> Iterator[Lot]:
    holds_next = shard.lots.find(after + 1)
    first_id = after + 1 if holds_next is None else holds_next.first_id
    while first_ids := shard.lots.first_ids(first_id, limits.SLICE_ITEMS):
        yield from filter(None, map(shard.lots.lots.get, first_ids))
        first_id = first_ids[-1] + 1


def _in_states(lot: Lot, indexes: range, states: frozenset[JobState]) -> range:
    """Where members may be in these states, any if there are none: what was handed out stands
    before the cursor, what waits behind.
    """
    waiting = JobState.SCHEDULED if lot.run_at_ms else JobState.READY
    start, stop = indexes.start, indexes.stop
    if states and JobState.ACTIVE not in states:
        start = max(start, lot.cursor)
    if states and waiting not in states:
        stop = min(stop, lot.cursor)
    return range(start, stop)


async def _fill_from_singles(
    piece: Piece, shard: Shard, wanted: JobFilter, after: int, clock: Clock
) -> None:
    """Single jobs above an id, in order; they stand in no order, so all are looked at."""
    best: list[int] = []
    for looked, job_id in enumerate(list(shard.jobs)):
        if looked % limits.SLICE_ITEMS == limits.SLICE_ITEMS - 1:
            await asyncio.sleep(0)
        if job_id <= after or (len(best) == piece.room and job_id > -best[0]):
            continue
        job = shard.jobs.get(job_id)
        if job is None or not _is_wanted(job, wanted, clock):
            continue
        heapq.heappush(best, -job_id)
        if len(best) > piece.room:
            heapq.heappop(best)
    for job_id in sorted(-negative for negative in best):
        job = shard.jobs.get(job_id)
        if job is not None and not piece.is_full:
            piece.add(live_view(job, clock))


def _is_wanted(job: Job, wanted: JobFilter, clock: Clock) -> bool:
    """Asks the cheap questions first: of a million jobs most are not wanted."""
    if wanted.states and job.state not in wanted.states:
        return False
    if not has_wanted_options(job.queue.name, job.options, job.pushed_ms, wanted):
        return False
    return matches(live_view(job, clock), wanted)
