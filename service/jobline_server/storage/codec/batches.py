"""Batches and their facts, between value and message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence

from jobline.v1 import entry_pb2, store_pb2
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
from jobline_server.engine.batches import (
    Batch,
    BatchCall,
    BatchCount,
    BatchCounts,
    BatchSpec,
    Callback,
    EndCounts,
)
from jobline_server.storage.codec.shared import interned_options
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.options import serialized_options


def fill_counts(
    message: store_pb2.BatchCounts, ids: Iterable[int], counts: Iterable[BatchCount]
) -> None:
    """Writes counts of batches, as columns."""
    message.SetInParent()
    message.ids.extend(ids)
    for by_end, has_died in counts:
        columns = _columns(message)
        for column, count in zip(columns, by_end, strict=True):
            column.append(count)
        message.has_died.append(has_died)


def counts_of(message: store_pb2.BatchCounts) -> list[BatchCount]:
    """Returns the counts in columns."""
    rows = zip(*_columns(message), message.has_died, strict=True)
    return [
        BatchCount((done, dead, cancelled, expired, deleted), has_died)
        for done, dead, cancelled, expired, deleted, has_died in rows
    ]


def _columns(message: store_pb2.BatchCounts) -> tuple[MutableSequence[int], ...]:
    return (message.done, message.dead, message.cancelled, message.expired, message.deleted)


def _fill_callback(message: store_pb2.StoredCallback, callback: Callback) -> None:
    message.queue, message.shard = callback.queue, callback.shard
    message.options = serialized_options(callback.options)
    message.payload = callback.payload
    message.group, message.unique_key = callback.group, callback.unique_key
    message.delay_ms = callback.delay_ms


def _callback_of(batch: store_pb2.StoredBatch, name: str) -> Callback | None:
    if not batch.HasField(name):  # type: ignore[arg-type]  # one of three names
        return None
    message: store_pb2.StoredCallback = getattr(batch, name)
    return Callback(
        message.queue,
        message.shard,
        interned_options(message.options),
        message.payload,
        message.group,
        message.unique_key,
        message.delay_ms,
    )


def fill_spec(message: store_pb2.StoredBatch, spec: BatchSpec) -> None:
    """Writes what a batch was created with."""
    message.name, message.parent_id = spec.name, spec.parent
    message.request_id = spec.request_id
    message.tags.extend(spec.tags)
    for field, callback in (
        (message.on_success, spec.on_success),
        (message.on_complete, spec.on_complete),
        (message.on_first_death, spec.on_first_death),
    ):
        if callback is not None:
            field.SetInParent()
            _fill_callback(field, callback)


def spec_of(message: store_pb2.StoredBatch) -> BatchSpec:
    """Reads what a batch was created with."""
    return BatchSpec(
        name=message.name,
        tags=tuple(message.tags),
        parent=message.parent_id,
        request_id=message.request_id,
        on_success=_callback_of(message, "on_success"),
        on_complete=_callback_of(message, "on_complete"),
        on_first_death=_callback_of(message, "on_first_death"),
    )


def fill_batch(message: store_pb2.StoredBatch, batch: Batch) -> None:
    """Writes a batch."""
    message.id = batch.id
    fill_spec(message, batch.spec)
    message.total = batch.total
    fill_counts(message.counts, (), [batch.ends.frozen()])
    message.created_ms, message.closed_ms = batch.created_ms, batch.closed_ms
    message.completed_ms, message.cancelled_ms = batch.completed_ms, batch.cancelled_ms
    message.cancelled_by, message.cancel_reason = batch.cancelled_by, batch.cancel_reason
    message.called = int(batch.called)


def batch_of(message: store_pb2.StoredBatch) -> Batch:
    """Reads a batch."""
    batch = Batch(message.id, spec_of(message), message.created_ms)
    batch.total = message.total
    batch.ends = ends_of(message)
    batch.closed_ms, batch.completed_ms = message.closed_ms, message.completed_ms
    batch.cancelled_ms = message.cancelled_ms
    batch.cancelled_by, batch.cancel_reason = message.cancelled_by, message.cancel_reason
    batch.called = BatchCall(message.called)
    if batch.completed_ms:
        batch.outcome = batch.final_outcome()
    return batch


def ends_of(message: store_pb2.StoredBatch) -> EndCounts:
    """Reads the only counts of a stored batch."""
    (count,) = counts_of(message.counts)
    return EndCounts(count.by_end, has_died=count.has_died)


def fill_batch_created(entry: entry_pb2.Entry, fact: BatchCreated) -> None:
    """Writes it into an entry."""
    entry.batch_created.batch.id = fact.id
    fill_spec(entry.batch_created.batch, fact.spec)


def batch_created(at_ms: int, message: entry_pb2.BatchCreated) -> BatchCreated:
    """Reads it."""
    return BatchCreated(at_ms, message.batch.id, spec_of(message.batch))


def fill_batch_closed(entry: entry_pb2.Entry, fact: BatchClosed) -> None:
    """Writes it into an entry."""
    entry.batch_closed.id = fact.id


def batch_closed(at_ms: int, message: entry_pb2.BatchClosed) -> BatchClosed:
    """Reads it."""
    return BatchClosed(at_ms, message.id)


def fill_batches_joined(entry: entry_pb2.Entry, fact: BatchesJoined) -> None:
    """Writes it into an entry."""
    entry.batches_joined.ids.extend(fact.ids)
    entry.batches_joined.counts.extend(fact.counts)


def batches_joined(at_ms: int, message: entry_pb2.BatchesJoined) -> BatchesJoined:
    """Reads it."""
    return BatchesJoined(at_ms, list(message.ids), list(message.counts))


def fill_batches_counted(entry: entry_pb2.Entry, fact: BatchesCounted) -> None:
    """Writes it into an entry."""
    fill_counts(entry.batches_counted.counts, fact.ids, fact.counts)


def batches_counted(at_ms: int, message: entry_pb2.BatchesCounted) -> BatchesCounted:
    """Reads it."""
    return BatchesCounted(at_ms, list(message.counts.ids), counts_of(message.counts))


def fill_batch_called(entry: entry_pb2.Entry, fact: BatchCalled) -> None:
    """Writes it into an entry."""
    message = entry.batch_called
    message.id, message.calls, message.name = fact.id, int(fact.calls), fact.name


def batch_called(at_ms: int, message: entry_pb2.BatchCalled) -> BatchCalled:
    """Reads it."""
    return BatchCalled(at_ms, message.id, BatchCall(message.calls), message.name)


def fill_batch_counts_sent(entry: entry_pb2.Entry, fact: BatchCountsSent) -> None:
    """Writes it into an entry."""
    entry.batch_counts_sent.ids.extend(fact.ids)


def batch_counts_sent(at_ms: int, message: entry_pb2.BatchCountsSent) -> BatchCountsSent:
    """Reads it."""
    return BatchCountsSent(at_ms, list(message.ids))


def fill_batch_cancelled(entry: entry_pb2.Entry, fact: BatchCancelled) -> None:
    """Writes it into an entry."""
    message = entry.batch_cancelled
    message.id, message.principal, message.reason = fact.id, fact.principal, fact.reason


def batch_cancelled(at_ms: int, message: entry_pb2.BatchCancelled) -> BatchCancelled:
    """Reads it."""
    return BatchCancelled(at_ms, message.id, message.principal, message.reason)


def fill_batches_forgotten(entry: entry_pb2.Entry, fact: BatchesForgotten) -> None:
    """Writes it into an entry."""
    entry.batches_forgotten.ids.extend(fact.ids)


def batches_forgotten(at_ms: int, message: entry_pb2.BatchesForgotten) -> BatchesForgotten:
    """Reads it."""
    return BatchesForgotten(at_ms, list(message.ids))


def fill_batch_counts(message: store_pb2.ShardMessage, value: BatchCounts) -> None:
    """Writes the message between shards."""
    fill_counts(message.batch_counts, value.ids, value.counts)


def batch_counts(message: store_pb2.BatchCounts) -> BatchCounts:
    """Reads it."""
    return BatchCounts(tuple(message.ids), tuple(counts_of(message)))


def _one_by_one(fact: BatchesForgotten) -> Iterator[BatchesForgotten]:
    for batch_id in fact.ids:
        yield BatchesForgotten(fact.at_ms, [batch_id])


def _sent_one_by_one(fact: BatchCountsSent) -> Iterator[BatchCountsSent]:
    for batch_id in fact.ids:
        yield BatchCountsSent(fact.at_ms, [batch_id])


FACTS: FactTable = {
    BatchCreated: FactRow("batch_created", fill_batch_created, batch_created, whole),
    BatchClosed: FactRow("batch_closed", fill_batch_closed, batch_closed, whole),
    BatchesJoined: FactRow("batches_joined", fill_batches_joined, batches_joined, whole),
    BatchesCounted: FactRow("batches_counted", fill_batches_counted, batches_counted, whole),
    BatchCalled: FactRow("batch_called", fill_batch_called, batch_called, whole),
    BatchCountsSent: FactRow(
        "batch_counts_sent", fill_batch_counts_sent, batch_counts_sent, _sent_one_by_one
    ),
    BatchCancelled: FactRow("batch_cancelled", fill_batch_cancelled, batch_cancelled, whole),
    BatchesForgotten: FactRow(
        "batches_forgotten", fill_batches_forgotten, batches_forgotten, _one_by_one
    ),
}
