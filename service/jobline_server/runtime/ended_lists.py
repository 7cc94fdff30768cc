"""Lists and statistics of ended jobs, out of the finished file."""

from __future__ import annotations

import asyncio

from jobline_server.engine.values import KEPT_STATES, EndReason
from jobline_server.runtime.ended import LOOK_JOBS, EndedJobs, kept_of_part, view_of
from jobline_server.runtime.listing import Piece
from jobline_server.runtime.shown import matches
from jobline_server.runtime.views import DeadCount, JobFilter, JobView
from jobline_server.storage.finished import EndedPart, EndedQuery


async def fill_from_ended(ended: EndedJobs, piece: Piece, wanted: JobFilter, after: int) -> None:
    """Adds the ended jobs that a filter lets through, with ids above `after`, by id, until the
    piece is full. Those that cannot be read are left out, and said in the log.
    """
    await ended.write()
    resume_after: int | None = after
    while resume_after is not None:
        limit = min(max(piece.room, LOOK_JOBS), 2 * LOOK_JOBS)
        page = await ended.finished.list(ended_query(wanted, resume_after, limit))
        ended.damage.found(page.bad)
        for part in page.parts:
            for view in views_of(part):
                if matches(view, wanted):
                    piece.add(view)
                    if piece.is_full:
                        return
        await asyncio.sleep(0)
        resume_after = page.resume_after


async def dead_statistics(ended: EndedJobs, queue: str) -> list[DeadCount]:
    """What dead jobs have in common, most first."""
    await ended.write()
    counts: list[DeadCount] = []
    for number, group in enumerate(await ended.finished.dead_statistics(queue), 1):
        counts.append(
            DeadCount(
                queue=group.queue,
                name=group.name,
                reason=EndReason(group.reason),
                error_type=group.error_type,
                count=group.count,
                oldest_ms=group.oldest_ms,
                newest_ms=group.newest_ms,
            )
        )
        if number % LOOK_JOBS == 0:
            await asyncio.sleep(0)
    return counts


def views_of(part: EndedPart) -> list[JobView]:
    """The jobs of a part, as operators see them."""
    ids = range(part.first_id, part.first_id + part.count)
    return list(map(view_of, kept_of_part(part, ids).values()))


def ended_query(wanted: JobFilter, after: int, limit: int) -> EndedQuery:
    """A filter as the finished file takes it: what it lets through may still have to be looked
    at.
    """
    return EndedQuery(
        queue=wanted.queue,
        states=frozenset(map(int, wanted.states & KEPT_STATES)),
        reasons=frozenset(map(int, wanted.reasons)),
        name=wanted.name,
        error_type=wanted.error_type,
        error_contains=wanted.error_contains,
        ended_after_ms=wanted.ended_after_ms,
        ended_before_ms=wanted.ended_before_ms,
        after_id=after,
        limit=limit,
    )
