"""Finds the ended jobs that are due: the rules of retention, over any ended store.

Each function returns up to `limit` parts, the oldest first, and scans no more than these; for a
count of jobs' own it also counts jobs, those up to that count or those beyond it, whichever are
fewer. A part is not cut: it ended with the last of its jobs, so more jobs than a rule asks for may
stay.

Totals are read before the parts, and the caller holds `EndedJobs.changing` in between. So all that
can change is that more jobs have ended: then fewer parts are found than are due, never more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from jobline_server.engine.values import JobState
from jobline_server.storage.ended_store import (
    BEFORE_ALL,
    EndedJobStore,
    EndedScan,
    EndedSpan,
    OwnCount,
    ScanKey,
    ScanOrder,
)

_EVERY_ID = 1 << 62

Spans = Sequence[EndedSpan]


async def past_age(
    store: EndedJobStore,
    queue: str,
    state: JobState,
    *,
    ended_before_ms: int,
    keep_newest: int,
    limit: int,
) -> Spans:
    """Returns jobs without an age of their own that ended before a time, without the newest
    `keep_newest` such jobs of the queue.
    """
    jobs = None
    if keep_newest:
        jobs = (await store.totals(queue, int(state))).jobs_by_queue_age - keep_newest
        if jobs <= 0:
            return []
    spans = await store.scan(
        replace(_by_queue_age(queue, state), until=_before(ended_before_ms), limit=limit)
    )
    return spans if jobs is None else _first_jobs(spans, jobs)


async def oldest_ms(store: EndedJobStore, queue: str, state: JobState) -> int | None:
    """Returns when the oldest job ended that has no age of its own."""
    found = await store.scan(replace(_by_queue_age(queue, state), limit=1))
    return found[0].at_ms if found else None


async def past_own_age(store: EndedJobStore, *, now_ms: int, limit: int) -> Spans:
    """Returns jobs of all queues whose own age has ended."""
    return await store.scan(EndedScan(ScanOrder.DUE, until=_before(now_ms + 1), limit=limit))


async def long_stale(
    store: EndedJobStore, *, now_ms: int, after: ScanKey = BEFORE_ALL, limit: int
) -> Spans:
    """Returns jobs of all queues behind a key that have been STALE for long enough."""
    scan = EndedScan(ScanOrder.STALE, after=after, until=_before(now_ms), limit=limit)
    return await store.scan(scan)


async def next_own_ms(store: EndedJobStore, *, now_ms: int) -> int | None:
    """Returns when the next job of any queue is due after now: its own age ends, or it was STALE
    for long enough.
    """
    later = _before(now_ms + 1)
    aged = await store.scan(EndedScan(ScanOrder.DUE, after=later, limit=1))
    stale = await store.scan(EndedScan(ScanOrder.STALE, after=_before(now_ms), limit=1))
    # STALE ones are deleted after their time, not at it.
    return min([*(one.at_ms for one in aged), *(one.at_ms + 1 for one in stale)], default=None)


async def past_retry(
    store: EndedJobStore, queue: str, *, now_ms: int, after: ScanKey, limit: int
) -> Spans:
    """Returns dead jobs of a queue behind a key whose automatic retry is due."""
    until = _before(now_ms + 1)
    scan = EndedScan(ScanOrder.RETRY, queue, after=after, until=until, limit=limit)
    return await store.scan(scan)


async def next_retry_ms(store: EndedJobStore, queue: str, *, now_ms: int) -> int | None:
    """Returns when the next dead job of a queue is retried that is not due yet."""
    later = await store.scan(EndedScan(ScanOrder.RETRY, queue, after=_before(now_ms + 1), limit=1))
    return later[0].at_ms if later else None


async def too_many(
    store: EndedJobStore,
    queue: str,
    state: JobState,
    *,
    keep_count: int,
    keep_bytes: int,
    limit: int,
) -> Spans:
    """Returns the oldest jobs of a queue beyond a number of jobs or a size of their blobs, whatever
    retention of their own they have. At least `keep_count` jobs stay, unless their blobs alone
    exceed `keep_bytes`.
    """
    jobs, size, _ = await store.totals(queue, int(state))
    if jobs <= keep_count and size <= keep_bytes:
        return []
    spans = await store.scan(EndedScan(ScanOrder.ENDED, queue, int(state), limit=limit))
    return oldest(spans, jobs, size, keep_count=keep_count, keep_bytes=keep_bytes)


def oldest(spans: Spans, jobs: int, size: int, *, keep_count: int, keep_bytes: int) -> Spans:
    """Returns the first spans, of so many jobs and bytes that there are, which are too many."""
    due = 0
    for span in spans:
        if jobs - span.count < keep_count and size <= keep_bytes:
            break
        jobs, size, due = jobs - span.count, size - span.bytes, due + 1
    return spans[:due]


async def beyond_own_count(store: EndedJobStore, own: OwnCount, *, limit: int) -> Spans:
    """Returns jobs with this count of their own for which it is reached: that many kept jobs of
    their queue and state ended later, ties by id. The older a job, the more did; so the first one
    that stays is found by bisection.
    """
    surplus = (await store.totals(own.queue, own.state)).jobs - own.count
    if surplus <= 0:
        return []
    ended = EndedScan(ScanOrder.ENDED, own.queue, own.state)
    spans = await store.scan(replace(ended, keep_count=own.count, limit=limit))
    if not spans:
        return []
    # At least `own.count` jobs ended after a part if and only if at most `surplus` ended up to it.
    # The smaller number is counted: once up to the nearest part, and from there only between parts.
    if own.count <= surplus:
        newest = spans[-1].key()
        needed = own.count - await store.count(replace(ended, after=newest, limit=own.count))
        if needed <= 0:
            return spans
        return await _until_newer(store, replace(ended, until=newest, limit=needed), spans)
    oldest = spans[0].key()
    spare = surplus - await store.count(replace(ended, until=oldest, limit=surplus + 1))
    if spare < 0:
        return []
    return await _until_older(store, replace(ended, after=oldest, limit=spare + 1), spans)


async def _until_newer(store: EndedJobStore, scan: EndedScan, spans: Spans) -> Spans:
    """Returns the first parts behind which a scan has as many jobs as its limit."""
    low, high = 0, len(spans) - 1
    while low < high:
        middle = (low + high) // 2
        if await store.count(replace(scan, after=spans[middle].key())) >= scan.limit:
            low = middle + 1
        else:
            high = middle
    return spans[:low]


async def _until_older(store: EndedJobStore, scan: EndedScan, spans: Spans) -> Spans:
    """Returns the first parts up to which a scan has fewer jobs than its limit."""
    low, high = 1, len(spans)
    while low < high:
        middle = (low + high) // 2
        if await store.count(replace(scan, until=spans[middle].key())) < scan.limit:
            low = middle + 1
        else:
            high = middle
    return spans[:low]


def _by_queue_age(queue: str, state: JobState) -> EndedScan:
    return EndedScan(ScanOrder.ENDED, queue, int(state), by_queue_age=True)


def _before(at_ms: int) -> ScanKey:
    """Returns the last key before a time."""
    return at_ms - 1, _EVERY_ID


def _first_jobs(spans: Spans, jobs: int) -> Spans:
    """Returns the first parts that have `jobs` jobs together at most."""
    totals = accumulate(span.count for span in spans)
    return spans[: sum(1 for _ in takewhile(lambda total: total <= jobs, totals))]
