"""Applies the facts of batches, and counts members that are pushed, end, are put back or deleted.

`note_ends` is called after every fact while this shard has live members of any batch: it sees which
jobs a fact ended by the effects of the fact, so that no fact is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.batch_entries import (
    BatchCalled,
    BatchCancelled,
    BatchClosed,
    BatchCountsSent,
    BatchCreated,
    BatchesCounted,
    BatchesForgotten,
    BatchesJoined,
)
from jobline_server.engine.batches import END_OF_STATE, Batch, MemberEnd
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.entries import JobsRetried
from jobline_server.engine.job import Job
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove


def join(shard: ShardState, batch_id: int, count: int) -> None:
    """Counts new members of a batch. Those of one at home elsewhere are counted there by
    `BatchesJoined`.
    """
    table = shard.batches
    table.count_live(batch_id, count)
    if not table.is_home(batch_id):
        table.joining[batch_id] = table.joining.get(batch_id, 0) + count
        return
    batch = table.records.get(batch_id)
    if batch is not None:
        batch.total += count
        _settle(shard, batch)


def join_all(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Counts new single jobs as members of their batches."""
    for batch_id, count in _by_batch(jobs).items():
        join(shard, batch_id, count)


def note_ends(shard: ShardState) -> None:
    """Counts the members that the fact ended which is being applied."""
    for effect in shard.effects:
        if isinstance(effect, JobsEnded):
            for batch_id, count in _by_batch(effect.jobs).items():
                _leave(shard, batch_id, END_OF_STATE[effect.state], count)
        elif isinstance(effect, RunsEnded):
            in_batch = effect.lot.options.rules.batch_id
            if in_batch:
                _leave(shard, in_batch, END_OF_STATE[effect.state], sum(effect.counts))


def note_deleted(shard: ShardState, batch_id: int, count: int) -> None:
    """Counts members that were deleted before they ended."""
    if batch_id:
        _leave(shard, batch_id, MemberEnd.DELETED, count)


def note_jobs_deleted(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Counts single jobs that were deleted before they ended."""
    for batch_id, count in _by_batch(jobs).items():
        _leave(shard, batch_id, MemberEnd.DELETED, count)


def note_retried(shard: ShardState, fact: JobsRetried) -> None:
    """Counts members out that had ended and are put back."""
    states = fact.outcomes or fact.states
    for record, state in zip(fact.jobs, states, strict=True):
        batch_id = record.options.rules.batch_id
        if batch_id:
            shard.batches.count_live(batch_id, 1)
            # Its end is known only as STALE where an earlier version retried it.
            _count(shard, batch_id, END_OF_STATE.get(state, MemberEnd.DONE), -1)


def _by_batch(jobs: Iterable[Job]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for job in jobs:
        batch_id = job.options.rules.batch_id
        if batch_id:
            counts[batch_id] = counts.get(batch_id, 0) + 1
    return counts


def _leave(shard: ShardState, batch_id: int, end: MemberEnd, count: int) -> None:
    shard.batches.count_live(batch_id, -count)
    _count(shard, batch_id, end, count)


def _count(shard: ShardState, batch_id: int, end: MemberEnd, count: int) -> None:
    """Counts ends, here or for the home shard. A batch that was forgotten counts no more."""
    table = shard.batches
    if not table.is_home(batch_id):
        table.note_unsent(batch_id, end, count)
        return
    batch = table.records.get(batch_id)
    if batch is not None:
        batch.ends.add(end, count)
        _settle(shard, batch)


def _settle(shard: ShardState, batch: Batch) -> None:
    """Takes note of new counts: whether the batch is complete, what that means for the batch that
    it is in, and which callbacks are due.
    """
    table = shard.batches
    table.mark(batch.id)
    was_over, before = bool(batch.completed_ms), batch.outcome
    is_over = batch.is_over()
    if is_over:
        batch.outcome = batch.final_outcome()
        if not was_over:
            batch.completed_ms = shard.at_ms
            table.completed[batch.id] = None
    elif was_over:
        batch.completed_ms, batch.outcome = 0, MemberEnd.DONE
        table.completed.pop(batch.id, None)
    if batch.calls_due():
        table.due[batch.id] = None
    else:
        table.due.pop(batch.id, None)
    parent = table.records.get(batch.spec.parent)
    has_changed = (was_over, before) != (is_over, batch.outcome)
    if parent is not None and has_changed and (was_over or is_over):
        if was_over:
            parent.ends.add(before, -1)
        if is_over:
            parent.ends.add(batch.outcome, 1)
        _settle(shard, parent)


def apply_batch_created(shard: ShardState, fact: BatchCreated, _offset: int) -> None:
    """Adds a batch, as a member of the one that it is in."""
    shard.use_ids(fact.id, 1)
    batch = Batch(fact.id, fact.spec, fact.at_ms)
    shard.batches.add(batch)
    shard.count_reports(batch.spec.held_bytes())
    shard.batches.mark(batch.id)
    parent = shard.batches.records.get(fact.spec.parent)
    if parent is not None:
        parent.total += 1
        _settle(shard, parent)


def apply_batch_closed(shard: ShardState, fact: BatchClosed, _offset: int) -> None:
    """Closes a batch."""
    batch = _existing(shard, fact.id)
    batch.closed_ms = fact.at_ms
    _settle(shard, batch)


def apply_batch_cancelled(shard: ShardState, fact: BatchCancelled, _offset: int) -> None:
    """Cancels a batch; its members are cancelled by other facts."""
    batch = _existing(shard, fact.id)
    batch.cancelled_ms, batch.cancelled_by = fact.at_ms, fact.principal
    batch.cancel_reason = fact.reason
    batch.closed_ms = batch.closed_ms or fact.at_ms
    _settle(shard, batch)


def apply_batches_joined(shard: ShardState, fact: BatchesJoined, _offset: int) -> None:
    """Counts new members in other shards."""
    for batch_id, count in zip(fact.ids, fact.counts, strict=True):
        batch = shard.batches.records.get(batch_id)
        if batch is not None:
            batch.total += count
            _settle(shard, batch)


def apply_batches_counted(shard: ShardState, fact: BatchesCounted, _offset: int) -> None:
    """Counts ends of members in other shards."""
    for batch_id, count in zip(fact.ids, fact.counts, strict=True):
        batch = shard.batches.records.get(batch_id)
        if batch is not None:
            _add(batch, count.by_end)
            batch.ends.has_died |= count.has_died
            _settle(shard, batch)


def _add(batch: Batch, by_end: Sequence[int]) -> None:
    for end, count in zip(MemberEnd, by_end, strict=True):
        batch.ends.add(end, count)


def apply_batch_called(shard: ShardState, fact: BatchCalled, _offset: int) -> None:
    """Notes which callbacks were decided."""
    batch = _existing(shard, fact.id)
    if batch.called & fact.calls:
        raise IllegalMove(f"callbacks {fact.calls!r} of batch {fact.id} were decided before")
    batch.called |= fact.calls
    _settle(shard, batch)


def apply_batch_counts_sent(shard: ShardState, fact: BatchCountsSent, _offset: int) -> None:
    """Forgets what was sent."""
    for batch_id in fact.ids:
        shard.batches.forget_unsent(batch_id)


def apply_batches_forgotten(shard: ShardState, fact: BatchesForgotten, _offset: int) -> None:
    """Removes batches."""
    for batch_id in fact.ids:
        batch = _existing(shard, batch_id)
        shard.batches.remove(batch)
        shard.count_reports(-batch.spec.held_bytes())


def _existing(shard: ShardState, batch_id: int) -> Batch:
    batch = shard.batches.records.get(batch_id)
    if batch is None:
        raise IllegalMove(f"there is no batch {batch_id}")
    return batch


APPLY: ApplyTable = {
    BatchCreated: apply_batch_created,
    BatchClosed: apply_batch_closed,
    BatchCancelled: apply_batch_cancelled,
    BatchesJoined: apply_batches_joined,
    BatchesCounted: apply_batches_counted,
    BatchCalled: apply_batch_called,
    BatchCountsSent: apply_batch_counts_sent,
    BatchesForgotten: apply_batches_forgotten,
}
