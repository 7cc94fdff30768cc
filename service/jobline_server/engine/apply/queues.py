"""Applies the facts of queues."""

from __future__ import annotations

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.apply import batches, groups
from jobline_server.engine.apply.allowances import set_allowance
from jobline_server.engine.apply.blocked import stop_waiting
from jobline_server.engine.apply.bookkeeping import drop_job, remove_lot, run_key
from jobline_server.engine.apply.fair_switch import heed_fair
from jobline_server.engine.apply.group_rates import change_default_rate
from jobline_server.engine.apply.limiters import free_permits, free_run
from jobline_server.engine.apply.noted import note_jobs, note_lot
from jobline_server.engine.apply.schedules import drop_schedules
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.blocks import BLOCK_IDS
from jobline_server.engine.endings import QueueGone
from jobline_server.engine.items import items_from
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueueLimited,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, after
from jobline_server.engine.values import JobState, RevokeReason


def apply_queue_changed(shard: ShardState, fact: QueueChanged, _offset: int) -> None:
    """Creates a queue or changes its settings."""
    if fact.created_number:
        queue = Queue(fact.queue, fact.created_number, fact.at_ms)
        shard.queues[fact.queue] = queue
        queue.born_id = fact.created_number
        shard.use_ids(fact.created_number, 1)
    queue = shard.queues[fact.queue]
    before, queue.settings = queue.settings, fact.settings
    set_allowance(shard, queue)
    if queue.fair is not None or fact.settings.fair:
        heed_fair(shard, queue)
    change_default_rate(shard, queue, before.group)
    shard.changes.queues.to_write.add(fact.queue)


def apply_queue_paused(shard: ShardState, fact: QueuePaused, _offset: int) -> None:
    """Pauses a queue, with the principal and the reason."""
    queue = shard.queues[fact.queue]
    queue.paused = True
    queue.paused_by = fact.principal
    queue.pause_reason = fact.reason
    shard.changes.queues.to_write.add(fact.queue)


def apply_queue_resumed(shard: ShardState, fact: QueueResumed, _offset: int) -> None:
    """Resumes a queue."""
    queue = shard.queues[fact.queue]
    queue.paused = False
    queue.paused_by = queue.pause_reason = ""
    shard.wake(queue)
    shard.changes.queues.to_write.add(fact.queue)


def apply_queue_limited(shard: ShardState, fact: QueueLimited, _offset: int) -> None:
    """Limits a queue for a time, with the principal and the reason, or lifts that limit."""
    queue = shard.queues[fact.queue]
    until_ms = fact.until_ms
    queue.limited = TimeLimit(until_ms, fact.principal, fact.reason) if until_ms else None
    set_allowance(shard, queue)
    shard.changes.queues.to_write.add(fact.queue)


def apply_queue_deleted(shard: ShardState, fact: QueueDeleted, _offset: int) -> None:
    """Deletes a queue with its jobs and revokes the leases of active ones."""
    queue = shard.queues.pop(fact.queue)
    if queue.groups:
        groups.forget_all(shard, queue)
    shard.limiters.leave(queue)
    shard.load.keep_totals(queue)
    drop_schedules(shard, fact.queue)
    deleted: list[tuple[int, int]] = []
    shard.load.active_jobs -= queue.counts[JobState.ACTIVE]
    if queue.live():
        items = [item for found in items_from(shard, queue, 0, BLOCK_IDS) for item in found]
        for item in items:
            if isinstance(item, Job):
                after(item.state, Move.DELETED, item.id)
                deleted.append((item.id, 1))
                note_jobs(shard, [item])
                batches.note_deleted(shard, item.options.rules.batch_id, 1)
                _drop_job(shard, item)
            else:
                after(item.state, Move.DELETED, item.first_id)
                deleted += item.live_runs()
                note_lot(shard, item)
                batches.note_deleted(shard, item.options.rules.batch_id, item.remaining)
                _drop_lot(shard, item)
        shard.unschedule(sum([1 for item in items if item.run_at_ms]))
    shard.effects.append(QueueGone(fact.queue, fact.at_ms, deleted))
    shard.changes.queues.to_write.discard(fact.queue)
    if queue.stored:
        shard.changes.queues.to_delete.append(queue.number)


def _drop_job(shard: ShardState, job: Job) -> None:
    if job.holder is not None:
        holder = job.holder
        shard.revoke(job, job.id, RevokeReason.QUEUE_DELETED)
        holder.free_slots(job, 1)
        holder.settle(1, len(job.payload))
        del holder.leases[job.id]
        job.holder = None
        free_permits(shard, [job])
    elif job.state is JobState.BLOCKED:
        stop_waiting(shard, [job])
    drop_job(shard, job)


def _drop_lot(shard: ShardState, lot: Lot) -> None:
    for lease in lot.leases:
        after(JobState.ACTIVE, Move.DELETED, lot.first_id + lease.start)
        _revoke(shard, lease)
    shard.load.live_jobs -= lot.remaining
    shard.load.payload_bytes -= lot.bytes_left()
    lot.remaining = 0
    remove_lot(shard, lot)


def _revoke(shard: ShardState, lease: RunLease) -> None:
    holder = lease.holder
    holder.free_slots(lease, lease.remaining)
    holder.settle(*lease.open_totals())
    del holder.leases[run_key(lease)]
    free_run(shard, lease.lot, lease.remaining)
    for job_id in lease.open_ids():
        shard.revoke(lease, job_id, RevokeReason.QUEUE_DELETED)


APPLY: ApplyTable = {
    QueueChanged: apply_queue_changed,
    QueuePaused: apply_queue_paused,
    QueueResumed: apply_queue_resumed,
    QueueLimited: apply_queue_limited,
    QueueDeleted: apply_queue_deleted,
}
