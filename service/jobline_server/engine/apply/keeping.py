"""Which of the jobs that end go to the ended store.

A job that is removed as it completes goes there, too, while others wait for it: they read its
result when they run. That depends on this shard alone: a journal that is read again says the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from jobline_server.engine import effective
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import DEFAULT_OPTIONS, NO_RETENTION, JobState


class Keeping(NamedTuple):
    """Jobs that are kept, those that are kept only until others have read their results, and those
    that are forgotten.
    """

    kept: list[Job]
    for_readers: list[Job]
    forgotten: list[Job]


def is_kept(queue: Queue, item: Lot | Job, state: JobState) -> bool:
    """Returns whether jobs that end in a state go to the ended store, whoever waits for them."""
    return not item.volatile and effective.is_kept(item.options, queue.settings, state)


def keeping_of(shard: ShardState, queue: Queue, jobs: Iterable[Job], state: JobState) -> Keeping:
    """Says what is kept of jobs of one queue that end in one state."""
    settings = queue.settings
    kept_by_default = effective.is_kept(DEFAULT_OPTIONS, settings, state)
    found = Keeping([], [], [])
    for job in jobs:
        options = job.options
        kept = kept_by_default
        if options.retention is not NO_RETENTION:
            kept = effective.is_kept(options, settings, state)
        if kept and not job.volatile:
            found.kept.append(job)
        elif not job.volatile and is_awaited(shard, job.id, state):
            found.for_readers.append(job)
        else:
            found.forgotten.append(job)
    return found


def awaited_of(
    shard: ShardState, lot: Lot, starts: list[int], counts: list[int], state: JobState
) -> list[int]:
    """Returns the members of a lot, as runs of ids, whose results others wait for."""
    if lot.volatile or not shard.dependencies.has_any:
        return []
    return [
        job_id
        for start, count in zip(starts, counts, strict=True)
        for job_id in range(start, start + count)
        if is_awaited(shard, job_id, state)
    ]


def runs_without(
    starts: list[int], counts: list[int], taken: Iterable[int]
) -> tuple[list[int], list[int]]:
    """Returns runs of ids without some of them, which are in order."""
    first_ids: list[int] = []
    lengths: list[int] = []
    left = deque(taken)
    for first_id, count in zip(starts, counts, strict=True):
        start, end = first_id, first_id + count
        while left and start <= left[0] < end:
            if left[0] > start:
                first_ids.append(start)
                lengths.append(left[0] - start)
            start = left.popleft() + 1
        if end > start:
            first_ids.append(start)
            lengths.append(end - start)
    return first_ids, lengths


def is_awaited(shard: ShardState, job_id: int, state: JobState) -> bool:
    """Returns whether a job completes for which others wait."""
    return state is JobState.COMPLETED and shard.dependencies.awaited.find(job_id) is not None
