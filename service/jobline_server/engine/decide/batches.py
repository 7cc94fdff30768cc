"""Batches: creates, closes and cancels them, counts members of other shards, pushes callbacks.

`settle_batches` is called right after a decision that left callbacks due or counts to be sent, so
that its facts are in the same commit, and by the timers for what is more than a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from jobline_server.engine import limits
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
from jobline_server.engine.batches import Batch, BatchCounts, BatchSpec, Callback
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.batch_members import not_found, takes_no_more
from jobline_server.engine.decide.caused import push_caused
from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.room import RETRY_AFTER_MS
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import Now, shard_of
from jobline_server.engine.view import ShardView

# The header of a callback that says of which batch it is.
BATCH_HEADER = "jobline-batch"


def existing_batch(shard: ShardView, batch_id: int, field: str = "id") -> Batch:
    """Returns the batch with this id; raises `Refused` with BATCH_NOT_FOUND."""
    batch = shard.batches.records.get(batch_id)
    if batch is None:
        raise not_found(batch_id, field)
    return batch


def decide_create_batch(shard: ShardView, now: Now, spec: BatchSpec) -> Batch:
    """Creates a batch, or returns the one that the same request created. Raises `Refused` with
    IDEMPOTENCY_MISMATCH, BATCH_NOT_FOUND, BATCH_COMPLETE, INVALID_FIELD, BATCHES_FULL or
    SERVER_FULL.
    """
    table = shard.batches
    known = table.by_request.get(spec.request_id) if spec.request_id else None
    if known is not None:
        if table.records[known].spec != spec:
            message = "request_id was used before with another request"
            raise Refused(RefusalKind.IDEMPOTENCY_MISMATCH, message, field="request_id")
        return table.records[known]
    if spec.parent:
        _check_parent(shard, spec.parent)
    if table.unfinished() >= limits.SHARD_BATCHES_MAX:
        message = f"there are {limits.SHARD_BATCHES_MAX} batches that are not complete in the shard"
        raise Refused(RefusalKind.BATCHES_FULL, message, retry_after_ms=60_000)
    _check_room(shard, spec)
    batch_id = shard.next_id()
    shard.emit(BatchCreated(now.wall_ms, batch_id, spec))
    return table.records[batch_id]


def _check_room(shard: ShardView, spec: BatchSpec) -> None:
    """The payloads of callbacks are in memory as long as the batch is, like those of jobs."""
    load, more = shard.load, spec.held_bytes()
    held_bytes, most = load.held_bytes(), load.waiting_bytes_max
    if more and held_bytes + more > most:
        message = f"the server holds {held_bytes} of {most} payload bytes; callbacks have {more}"
        raise Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)


def _check_parent(shard: ShardView, parent_id: int) -> None:
    parent = existing_batch(shard, parent_id, "parent_id")
    if not parent.takes_members():
        raise takes_no_more(parent, "parent_id")
    depth, batch = 1, parent
    while batch.spec.parent in shard.batches.records:
        depth, batch = depth + 1, shard.batches.records[batch.spec.parent]
    if depth >= limits.BATCH_DEPTH_MAX:
        message = f"batches nest {limits.BATCH_DEPTH_MAX} deep at most"
        raise Refused(RefusalKind.INVALID_FIELD, message, field="parent_id")


def decide_close_batch(shard: ShardView, now: Now, batch_id: int) -> Batch:
    """Closes a batch. Raises `Refused` with BATCH_NOT_FOUND."""
    batch = existing_batch(shard, batch_id)
    if not batch.closed_ms:
        shard.emit(BatchClosed(now.wall_ms, batch_id))
    return batch


def decide_cancel_batch(
    shard: ShardView, now: Now, batch_id: int, principal: str, reason: str
) -> None:
    """Closes a batch for good; what is called again for one that was cancelled, changes nothing.
    Does nothing if it does not exist any more.
    """
    batch = shard.batches.records.get(batch_id)
    if batch is not None and not batch.cancelled_ms:
        shard.emit(BatchCancelled(now.wall_ms, batch_id, principal, reason))


def decide_joined(shard: ShardView, now: Now, counts: Mapping[int, int]) -> None:
    """Counts new members that were pushed in another shard just now. Call it in the same step as
    the push, so that both are in one commit.
    """
    known = {one: count for one, count in counts.items() if one in shard.batches.records}
    if known:
        shard.emit(BatchesJoined(now.wall_ms, list(known), list(known.values())))


def decide_counted(shard: ShardView, now: Now, message: BatchCounts) -> None:
    """Counts what became of members in another shard; of a batch that was forgotten nothing."""
    pairs = zip(message.ids, message.counts, strict=True)
    known = [(one, count) for one, count in pairs if one in shard.batches.records]
    if known:
        ids, counts = [one for one, _ in known], [count for _, count in known]
        shard.emit(BatchesCounted(now.wall_ms, ids, counts))


def settle_batches(shard: ShardView, now: Now, limit: int) -> bool:
    """Pushes the callbacks of up to `limit` batches, and sends what became of members of others;
    returns whether more callbacks are due.
    """
    due = shard.batches.due
    for batch_id in list(islice(due, limit)):
        batch = shard.batches.records[batch_id]
        calls = batch.calls_due()
        shard.emit(BatchCalled(now.wall_ms, batch_id, calls, batch.spec.name))
        for callback in batch.spec.callbacks(calls):
            _push(shard, now, batch_id, callback)
    if shard.batches.unsent:
        _send_counts(shard, now)
    return bool(due)


def _push(shard: ShardView, now: Now, batch_id: int, callback: Callback) -> None:
    headers = (*callback.options.headers, (BATCH_HEADER, str(batch_id)))
    ties = Ties(callback.group, callback.unique_key)
    message = PushJobs(
        callback.queue,
        replace(callback.options, headers=tuple(sorted(headers))),
        Payloads.of([callback.payload]),
        NO_TIES if ties == NO_TIES else ties,
        callback.delay_ms,
    )
    if callback.shard == shard.number:
        push_caused(shard, now, message)
    else:
        decide_send(shard, now, callback.shard, [message])


def has_sendable(shard: ShardView) -> bool:
    """Returns whether counts are to be sent that wait for no acknowledgement."""
    some = islice(shard.batches.unsent, limits.SLICE_BATCHES)
    return any(not any(True for _ in shard.messages.outbox(shard_of(one))) for one in some)


def _send_counts(shard: ShardView, now: Now) -> None:
    """Sends counts to shards for which nothing waits in the outbox. Others get theirs when that is
    acknowledged: so under load many ends are one message.
    """
    by_shard: dict[int, list[int]] = {}
    for batch_id in shard.batches.unsent:
        by_shard.setdefault(shard_of(batch_id), []).append(batch_id)
    for to_shard, ids in by_shard.items():
        if any(True for _ in shard.messages.outbox(to_shard)):
            continue
        del ids[limits.SLICE_BATCHES_FORGOTTEN :]
        counts = [shard.batches.unsent[one].frozen() for one in ids]
        shard.emit(BatchCountsSent(now.wall_ms, ids))
        decide_send(shard, now, to_shard, [BatchCounts(tuple(ids), tuple(counts))])


def forget_batches(shard: ShardView, now: Now) -> bool:
    """Forgets a slice of the batches that were complete for long enough, or that are too many;
    returns whether more are due.
    """
    table, kept_ms = shard.batches, shard.load.batch_kept_ms
    over = len(table.completed) - limits.SHARD_BATCHES_KEPT_MAX
    chosen: list[int] = []
    for batch_id in islice(table.completed, limits.SLICE_BATCHES_FORGOTTEN):
        batch = table.records[batch_id]
        if batch.completed_ms + kept_ms > now.wall_ms and len(chosen) >= over:
            break
        if batch_id not in table.due:
            chosen.append(batch_id)
    if chosen:
        shard.emit(BatchesForgotten(now.wall_ms, chosen))
    return len(chosen) == limits.SLICE_BATCHES_FORGOTTEN


def next_forgotten_ms(shard: ShardView) -> int:
    """Returns when the first of the complete batches is forgotten; call it if there are any."""
    first = next(iter(shard.batches.completed))
    return shard.batches.records[first].completed_ms + shard.load.batch_kept_ms
