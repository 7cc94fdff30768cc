"""Queues: creates, changes, pauses and deletes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.fairness import check_switch
from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueueLimited,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.room import RETRY_AFTER_MS
from jobline_server.engine.values import DEFAULT_SETTINGS, JobState, Now, QueueSettings
from jobline_server.engine.view import ShardView

LIMITED_BY_WORKER = "a worker released a job: LIMITED"


def known_queue(shard: ShardView, now: Now, name: str, *, has_room: bool = False) -> Queue:
    """Returns the queue with this name, created if it does not exist. Raises `Refused` with
    SERVER_FULL if there are too many, unless `has_room`: the caller has checked.
    """
    queue = shard.queues.get(name)
    if queue is None:
        if not has_room and len(shard.queues) >= limits.SHARD_QUEUES_MAX:
            message = (
                f"there is no queue {name}, and its shard has {limits.SHARD_QUEUES_MAX} others, "
                "the most there may be"
            )
            raise Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        number = shard.next_id()
        shard.emit(QueueChanged(now.wall_ms, name, DEFAULT_SETTINGS, created_number=number))
        queue = shard.queues[name]
    shard.note_use(queue, now.wall_ms)
    return queue


def existing_queue(shard: ShardView, name: str) -> Queue:
    """Returns the queue with this name; raises `Refused` with QUEUE_NOT_FOUND."""
    queue = shard.queues.get(name)
    if queue is None:
        raise Refused(RefusalKind.QUEUE_NOT_FOUND, f"there is no queue {name}", field="queue")
    return queue


def decide_update_queue(
    shard: ShardView, now: Now, name: str, settings: QueueSettings, mask: frozenset[str] | None
) -> None:
    """Changes the settings in `mask` (None: all); creates the queue if it does not exist. Raises
    `Refused` with WRONG_STATE if too many jobs of groups wait for `fair` to be changed.
    """
    queue = known_queue(shard, now, name)
    if mask is not None:
        changed = {field: getattr(settings, field) for field in sorted(mask)}
        settings = replace(queue.settings, **changed)
    if settings.fair != queue.settings.fair:
        check_switch(queue)
    if settings != queue.settings:
        shard.clocks.advance(now)
        shard.emit(QueueChanged(now.wall_ms, name, settings))


def decide_pause_queue(shard: ShardView, now: Now, name: str, principal: str, reason: str) -> None:
    """Pauses a queue: none of its jobs are leased. Pausing it again replaces the reason."""
    existing_queue(shard, name)
    shard.emit(QueuePaused(now.wall_ms, name, principal, reason))


def decide_resume_queue(shard: ShardView, now: Now, name: str) -> None:
    """Resumes a queue; does nothing if it is not paused."""
    if existing_queue(shard, name).paused:
        shard.emit(QueueResumed(now.wall_ms, name))


def decide_limit_queue(
    shard: ShardView, now: Now, name: str, until_ms: int, principal: str, reason: str
) -> None:
    """Has a queue let nothing out until a wall time, instead of what was said before; a time that
    has passed lifts the limit.
    """
    queue = existing_queue(shard, name)
    if until_ms <= now.wall_ms:
        until_ms = 0
    if until_ms or queue.limited is not None:
        shard.emit(QueueLimited(now.wall_ms, name, until_ms, principal, reason))


def longer_limit_ms(shard: ShardView, now: Now, known: TimeLimit | None, until_ms: int) -> int:
    """Returns until when a worker may limit what it says it has met the limit of; 0 if it is
    limited for as long already, or the time is over.
    """
    said_ms = 0 if known is None else known.until_ms
    until_ms = min(until_ms, now.wall_ms + shard.load.worker_limit_ms_max)
    return until_ms if until_ms > max(said_ms, now.wall_ms) else 0


def limit_as_told(shard: ShardView, now: Now, lease: Job | RunLease, until_ms: int) -> None:
    """Has the queue of a released job let nothing out until a wall time, as its worker says, but
    for no longer than workers may; it takes no time back that was said before.
    """
    queue = lease.queue if isinstance(lease, Job) else lease.lot.queue
    until_ms = longer_limit_ms(shard, now, queue.limited, until_ms)
    if until_ms:
        worker = lease.holder.worker if lease.holder else ""
        shard.emit(QueueLimited(now.wall_ms, queue.name, until_ms, worker, LIMITED_BY_WORKER))


def decide_delete_queue(shard: ShardView, now: Now, name: str, *, force: bool) -> int:
    """Deletes a queue with its live and ended jobs; returns how many there were. Raises `Refused`
    with QUEUE_ACTIVE if it has active jobs, unless `force`.
    """
    queue = existing_queue(shard, name)
    active = queue.counts[JobState.ACTIVE]
    if active and not force:
        raise Refused(
            RefusalKind.QUEUE_ACTIVE,
            f"queue {name} has {active} active jobs; set force to delete it all the same",
            field="force",
        )
    count = sum(queue.counts)
    shard.emit(QueueDeleted(now.wall_ms, name))
    return count


def decide_delete_active(shard: ShardView, now: Now, ids: Iterable[int]) -> int:
    """Deletes active jobs of a queue that is being deleted; returns how many there were."""
    shard.clocks.advance(now)
    chosen: dict[tuple[str, bool], tuple[list[int], list[int]]] = {}
    last: Job | RunLease | None = None
    for job_id in sorted(ids):
        lease, _ = shard.find_lease(job_id)
        if lease is None:
            continue
        owner = lease if isinstance(lease, Job) else lease.lot
        starts, counts = chosen.setdefault((owner.queue.name, owner.volatile), ([], []))
        if lease is last and starts[-1] + counts[-1] == job_id:
            counts[-1] += 1
        else:
            starts.append(job_id)
            counts.append(1)
        last = lease
    for (queue, volatile), (starts, counts) in chosen.items():
        fact = JobsDeleted(now.wall_ms, queue, JobState.ACTIVE, starts, counts)
        shard.emit(fact, volatile=volatile)
    return sum(sum(counts) for _, counts in chosen.values())


def decide_delete_idle_queues(
    shard: ShardView, now: Now, names: Iterable[str] | None = None
) -> int:
    """Deletes the queues among `names` (None: all) that were empty for `EMPTY_QUEUE_MS` and have
    default settings; returns how many. Call it periodically: the time counts from the last call
    that found jobs in the queue.
    """
    before = now.wall_ms - limits.EMPTY_QUEUE_MS
    idle: list[str] = []
    for name in list(shard.queues) if names is None else names:
        queue = shard.queues.get(name)
        if queue is None:
            continue
        # With schedules: they would go with it.
        if any(queue.counts) or shard.schedules.of_queue(queue.name):
            shard.note_use(queue, now.wall_ms)
        elif queue.is_plain(now.wall_ms) and queue.touched_ms < before:
            idle.append(queue.name)
    for name in idle:
        shard.emit(QueueDeleted(now.wall_ms, name))
    return len(idle)
