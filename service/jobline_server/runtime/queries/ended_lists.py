"""Lists ended jobs from the ended store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from jobline_server.engine.values import KEPT_STATES
from jobline_server.runtime.ended.ended_jobs import LOOKUP_JOBS, EndedJobs, kept_of_part, view_of
from jobline_server.runtime.job_views import matches, was_pushed_between
from jobline_server.runtime.queries.job_runs import JobRun, ended_run, is_run_decided
from jobline_server.runtime.queries.paging import PageBuilder
from jobline_server.runtime.queries.run_pages import RunPageBuilder
from jobline_server.runtime.views import JobFilter, JobView
from jobline_server.storage.codec import blob_parts, pushed_ms_of
from jobline_server.storage.ended_store import EndedPart, EndedQuery

# Jobs of one step of the loop: to read and check one with its errors takes up to 50 µs.
STEP_JOBS = 100
# To read a row of several jobs as a run takes as long as to read this many jobs.
RUN_JOBS = 20


async def fill_from_ended(
    ended: EndedJobs, builder: PageBuilder, wanted: JobFilter, after: int
) -> None:
    """Adds ended jobs that pass a filter, with ids above `after`, by id, until the page is full.
    Leaves out damaged jobs, and logs them.
    """
    await ended.write()
    resume_after: int | None = after
    jobs_a_part = 1
    while resume_after is not None:
        limit = _limit_of(builder, jobs_a_part)
        query = ended_query(wanted, resume_after, limit)
        page = await ended.page(query, of_search=is_search(wanted))
        looked = 0
        for part in page.parts:
            for count in _add_part(ended, builder, part, wanted):
                if builder.is_full:
                    return
                looked += count
                if looked >= STEP_JOBS:
                    looked = 0
                    await asyncio.sleep(0)
        await asyncio.sleep(0)
        jobs_a_part = sum(part.count for part in page.parts) // max(len(page.parts), 1)
        resume_after = page.resume_after


def _limit_of(builder: PageBuilder, jobs_a_part: int) -> int:
    """Returns how many jobs to read next. Of rows of several jobs, as the last ones were, a page of
    runs has room for more.
    """
    if not isinstance(builder, RunPageBuilder):
        return min(max(builder.room, LOOKUP_JOBS), 2 * LOOKUP_JOBS)
    return max(min(builder.room, builder.entries_left * jobs_a_part), LOOKUP_JOBS)


def _add_part(
    ended: EndedJobs, builder: PageBuilder, part: EndedPart, wanted: JobFilter
) -> Iterator[int]:
    """Adds the jobs of a part that pass a filter, until the page is full; yields how many were
    looked at, or as many as it takes the time of.
    """
    if not may_match(part, wanted):
        yield min(part.count, RUN_JOBS)
        return
    if isinstance(builder, RunPageBuilder) and part.row.count > 1:
        run = ended_run(part)
        if is_run_decided(run.payloads, wanted) and not _is_cut(run, wanted):
            if matches(run.shared, wanted):
                builder.add_run(run)
            yield RUN_JOBS
            return
    for ids in _pieces(part):
        for view in views_of(part, ids):
            if matches(view, wanted):
                builder.add(ended.dated(view))
                if builder.is_full:
                    break
        yield len(ids)


def _is_cut(run: JobRun, wanted: JobFilter) -> bool:
    """Returns whether a filter may want some jobs of a run only, because of when they ended: those
    of a row ended within seconds of each other.
    """
    bounds = (wanted.ended_after_ms, wanted.ended_before_ms)
    if bounds == (None, None) or not run.ended_ms:
        return False
    first_ms, last_ms = min(run.ended_ms), max(run.ended_ms)
    return any(bound is not None and first_ms <= bound <= last_ms for bound in bounds)


def _pieces(part: EndedPart) -> Iterator[range]:
    """Yields the ids of a part, as many at a time as are read in one step."""
    end_id = part.first_id + part.count
    for first_id in range(part.first_id, end_id, STEP_JOBS):
        yield range(first_id, min(first_id + STEP_JOBS, end_id))


def views_of(part: EndedPart, ids: Iterable[int]) -> list[JobView]:
    """Returns views of some jobs of a part."""
    return list(map(view_of, kept_of_part(part, ids).values()))


def is_search(wanted: JobFilter) -> bool:
    """Returns whether a filter has a condition on what only the blobs of ended jobs have."""
    is_timed = wanted.pushed_after_ms is not None or wanted.pushed_before_ms is not None
    return is_timed or bool(wanted.headers or wanted.tags or wanted.batches or wanted.group)


def may_match(part: EndedPart, wanted: JobFilter) -> bool:
    """Returns whether jobs of a part that the ended store found may pass a filter. The one
    condition that it cannot check at all is when they were pushed, and they were at once.
    """
    if wanted.pushed_after_ms is None and wanted.pushed_before_ms is None:
        return True
    return was_pushed_between(pushed_ms_of(part.row), wanted)


def ended_query(wanted: JobFilter, after: int, limit: int) -> EndedQuery:
    """Returns a filter as the ended store takes it; its results may still need `matches`."""
    return EndedQuery(
        queue=wanted.queue,
        states=frozenset(map(int, wanted.states & KEPT_STATES)),
        reasons=frozenset(map(int, wanted.reasons)),
        name=wanted.name,
        error_type=wanted.error_type,
        error_contains=wanted.error_contains,
        ended_after_ms=wanted.ended_after_ms,
        ended_before_ms=wanted.ended_before_ms,
        blob_parts=blob_parts(
            tags=wanted.tags, headers=wanted.headers, group=wanted.group, batches=wanted.batches
        ),
        after_id=after,
        limit=limit,
    )
