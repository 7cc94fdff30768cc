"""Which of the jobs that end go to the ended store.

A job that is removed as it completes goes there, too, while others wait for it: they read its
result when they run. That depends on this shard alone: a journal that is read again says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobline_server.engine import effective
from jobline_server.engine.dependencies import Awaited
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.tables import IdTable
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
    awaited = _awaited_by_readers(shard, state)
    found = Keeping([], [], [])
    for job in jobs:
        options = job.options
        kept = kept_by_default
        if options.retention is not NO_RETENTION:
            kept = effective.is_kept(options, settings, state)
        if kept and not job.volatile:
            found.kept.append(job)
        elif awaited is not None and not job.volatile and awaited.find(job.id) is not None:
            found.for_readers.append(job)
        else:
            found.forgotten.append(job)
    return found


def awaited_of(
    shard: ShardState, lot: Lot, starts: list[int], counts: list[int], state: JobState
) -> list[int]:
    """Returns the members of a lot, as runs of ids, whose results others wait for."""
    awaited = _awaited_by_readers(shard, state)
    if lot.volatile or awaited is None:
        return []
    return [
        job_id
        for start, count in zip(starts, counts, strict=True)
        for job_id in range(start, start + count)
        if awaited.find(job_id) is not None
    ]


def _awaited_by_readers(shard: ShardState, state: JobState) -> IdTable[Awaited] | None:
    """Returns the jobs whose results others wait for; None if no job that ends so has one."""
    dependencies = shard.dependencies
    return dependencies.awaited if state is JobState.COMPLETED and dependencies.has_any else None
