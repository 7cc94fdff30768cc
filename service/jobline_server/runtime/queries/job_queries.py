"""Reads single jobs and pages of jobs, live ones from memory and ended ones from the ended store.

Walks over many live jobs run in slices, so that they do not block the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.unique_holders import key_holder
from jobline_server.engine.keys import JOB_KEY, hash_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import KEPT_STATES
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.job_views import in_lot, live_view, members_wanted
from jobline_server.runtime.queries.ended_lists import fill_from_ended
from jobline_server.runtime.queries.job_runs import is_run_decided, runs_in_lot
from jobline_server.runtime.queries.paging import PageBuilder, page_of
from jobline_server.runtime.queries.run_pages import RunPage, RunPageBuilder, run_page_of
from jobline_server.runtime.queries.walks import (
    PART_JOBS,
    SLICE_JOBS,
    asks_for_ended,
    is_wanted,
    live_items,
    member_runs,
    members_after,
    slots_of,
)
from jobline_server.runtime.views import JobFilter, JobView

Builder = TypeVar("Builder", bound=PageBuilder)


class JobQueries:
    """Reads jobs, live and ended."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended

    async def get_job(self, job_id: int) -> JobView:
        """Returns a job by id. Raises `Refused` with JOB_NOT_FOUND."""
        live = self.live(job_id)
        if live is not None:
            return live
        await self._core.commits.wait()
        view = await self._ended.view(job_id)
        if view is None:
            raise Refused(RefusalKind.JOB_NOT_FOUND, f"there is no job {job_id}", field="id")
        return view

    async def get_job_by_key(self, queue: str, key: str) -> JobView:
        """Returns a job by its idempotency key. Raises `Refused` with JOB_NOT_FOUND."""
        shard = self._core.slots.of_queue(queue).shard
        aged_ms = shard.age.at(self._core.now())
        record = shard.keys.find(hash_of(JOB_KEY, queue, key.encode()), aged_ms)
        if record is None:
            message = f"no job of queue {queue} is known by this key"
            raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="job_key.key")
        return await self.get_job(record.first_id)

    async def get_job_by_unique_key(self, queue: str, key: str) -> JobView:
        """Returns the job that holds a unique key. Raises `Refused` with JOB_NOT_FOUND."""
        shard = self._core.slots.of_queue(queue).shard
        job_id = key_holder(shard, self._core.now(), queue, key)
        if job_id is None:
            message = f"no job of queue {queue} holds this key"
            raise Refused(RefusalKind.JOB_NOT_FOUND, message, field="unique_key.key")
        return await self.get_job(job_id)

    def live(self, job_id: int) -> JobView | None:
        """Returns a live job, or None."""
        slot = self._core.slots.of_id(job_id)
        shard = slot.shard if slot is not None else None
        if shard is None or shard.state_of(job_id) is None:
            return None
        owner = shard.jobs.find(job_id) or shard.lots.find(job_id)
        clock = self._core.clock
        if isinstance(owner, Lot):
            return in_lot(owner, job_id - owner.first_id, clock)
        return None if owner is None else live_view(owner, clock)

    async def list_jobs(
        self, wanted: JobFilter, *, page_size: int, page_token: str, include_payloads: bool
    ) -> tuple[list[JobView], str]:
        """Returns a page of jobs by id, and the token of the next page, or "". A page may be cut
        short by its size; it holds at least one job if there is one.
        """
        after = _parse_token(page_token)
        views, is_cut = await self.first_after(
            wanted, after, page_size, with_payloads=include_payloads
        )
        return views, str(views[-1].id) if is_cut else ""

    async def list_runs(
        self, wanted: JobFilter, *, page_size: int, page_token: str, include_payloads: bool
    ) -> tuple[RunPage, str]:
        """Returns a page as `list_jobs` does, with jobs that are alike as runs."""
        after = _parse_token(page_token)
        builders = await self._filled(
            partial(RunPageBuilder, page_size, with_payloads=include_payloads), wanted, after
        )
        page = run_page_of(builders, page_size, with_payloads=include_payloads)
        return page, str(page.last_id) if page.is_cut else ""

    async def first_after(
        self, wanted: JobFilter, after: int, count: int, *, with_payloads: bool = False
    ) -> tuple[list[JobView], bool]:
        """Returns up to `count` jobs with ids above `after`, and whether there may be more."""
        new_builder = partial(PageBuilder, count, with_payloads=with_payloads)
        builders = await self._filled(new_builder, wanted, after)
        # A job that was retried or ended between the two reads is shown once, as it was read first.
        return page_of(builders, count)

    async def _filled(
        self, new_builder: Callable[[], Builder], wanted: JobFilter, after: int
    ) -> list[Builder]:
        """Returns builders of all sources, each with enough for a page or all that there is."""
        builders: list[Builder] = []
        if (not wanted.states or wanted.states - KEPT_STATES) and not asks_for_ended(wanted):
            builders = await self._live_after(new_builder, wanted, after)
        if not wanted.states or wanted.states & KEPT_STATES:
            # After the live jobs were read: those that ended meanwhile are in the ended buffer now.
            await self._core.commits.wait()
            builder = new_builder()
            await fill_from_ended(self._ended, builder, wanted, after)
            builders.append(builder)
        return builders

    async def _live_after(
        self, new_builder: Callable[[], Builder], wanted: JobFilter, after: int
    ) -> list[Builder]:
        """Returns, for each shard, the first members of lots and the first single jobs."""
        builders: list[Builder] = []
        for slot in slots_of(self._core, wanted):
            in_lots, singles = new_builder(), new_builder()
            await _fill(in_lots, singles, slot.shard, wanted, after, self._core.clock)
            builders += (in_lots, singles)
            # With many queues, one shard takes an iteration of the loop.
            await asyncio.sleep(0)
        return builders


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


async def _fill(  # two builders, and what to add to them
    in_lots: PageBuilder,
    singles: PageBuilder,
    shard: Shard,
    wanted: JobFilter,
    after: int,
    clock: Clock,
) -> None:
    """Adds live jobs above an id, in order: members of lots, and single jobs. Ends when one of the
    builders has enough for a page: jobs after its last one are on a later page.
    """
    checked = 0
    for items in live_items(shard, wanted, after):
        for item in items:
            last_id = min(in_lots.last_id, singles.last_id)
            if isinstance(item, Lot):
                if item.first_id > last_id:
                    return
                if in_lots.is_full:
                    continue
                for looked in _add_lot(in_lots, item, wanted, after, clock):
                    checked += looked
                    if checked >= SLICE_JOBS:
                        checked = 0
                        await asyncio.sleep(0)
            elif item.id > last_id:
                return
            elif item.id > after and not singles.is_full and is_wanted(item, wanted):
                singles.add(live_view(item, clock))
                checked += 1
        await asyncio.sleep(0)


def _add_lot(
    builder: PageBuilder, lot: Lot, wanted: JobFilter, after: int, clock: Clock
) -> Iterator[int]:
    """Adds members of a lot until the page is full; yields how many were looked at, or as many as
    it takes the time of. The lot may change meanwhile.
    """
    if isinstance(builder, RunPageBuilder) and is_run_decided(lot.payloads, wanted):
        yield PART_JOBS * _add_runs(builder, lot, members_after(lot, wanted, after), wanted, clock)
        return
    for indexes in member_runs(lot, wanted, after):
        _add_members(builder, lot, indexes, wanted, clock)
        yield len(indexes)
        if builder.is_full:
            return


def _add_runs(
    builder: RunPageBuilder, lot: Lot, members: range, wanted: JobFilter, clock: Clock
) -> int:
    """Adds runs until the page is full, which is in one step for the most that fit; returns how
    many were looked at.
    """
    looked = 0
    for run in runs_in_lot(lot, members, clock):
        looked += 1
        if not wanted.states or run.shared.state in wanted.states:
            builder.add_run(run)
            if builder.is_full:
                break
    return looked


def _add_members(
    builder: PageBuilder, lot: Lot, indexes: range, wanted: JobFilter, clock: Clock
) -> None:
    for index in members_wanted(lot, indexes, wanted):
        view = in_lot(lot, index, clock)
        if view is not None and (not wanted.states or view.state in wanted.states):
            builder.add(view)
            if builder.is_full:
                return
