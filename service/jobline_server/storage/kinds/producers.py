"""Producers ↔ the items of a checkpoint: each is written again when it changed."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.producers import CallRecord, Producer
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import sequence_of
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_producer(producer: bytes, record: Producer) -> bytes:
    """Returns the blob of a producer with the calls that may come again."""
    message = store_pb2.StoredProducer()
    message.id = producer
    message.answered_below = record.answered_below
    message.heard_ms = record.last_seen_ms
    message.sequences.extend(record.calls)
    message.first_ids.extend([call.first_id for call in record.calls.values()])
    message.counts.extend([call.jobs for call in record.calls.values()])
    message.digests.extend([call.digest for call in record.calls.values()])
    stored_rows = [call.stored_rows for call in record.calls.values()]
    if any(stored_rows):
        message.stored_rows.extend(stored_rows)
    return message.SerializeToString()


def decode_producer(blob: bytes) -> tuple[bytes, Producer]:
    """Returns the id and the producer in a blob."""
    message = store_pb2.StoredProducer.FromString(blob)
    record = Producer(message.heard_ms, message.answered_below)
    stored_rows = message.stored_rows or [b""] * len(message.sequences)
    columns = message.first_ids, message.counts, message.digests, stored_rows
    rows = zip(*columns, strict=True)
    calls = zip(message.sequences, rows, strict=True)
    record.calls = {sequence: CallRecord(*row) for sequence, row in calls}
    return message.id, record


def load_producers(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of producers."""
    shard = loading.shard
    for row in rows:
        producer, record = decode_producer(row.blob)
        _note_number(loading, row.key)
        record.item_key = row.key
        shard.load.calls += shard.producers.add(producer, record)


def _note_number(loading: Loading, item_key: int) -> None:
    """Sees to it that an item key is not given out again."""
    table = loading.shard.producers
    table.last_number = max(table.last_number, sequence_of(item_key))


def _save(shard: Shard, producer: bytes, record: Producer) -> tuple[int, bytes]:
    record.item_key = record.item_key or shard.id_of(shard.producers.new_number())
    return record.item_key, encode_producer(producer, record)


PRODUCERS = DurableKind(
    ItemKind.PRODUCER,
    load=load_producers,
    slices=by_id(
        ItemKind.PRODUCER,
        owner=lambda shard: shard.producers.records,
        changes=lambda shard: shard.changes.producers,
        save=_save,
    ),
    note_damaged=_note_number,
)
