"""Producers in a checkpoint: a row each, written again when it changed, removed when it went."""

from __future__ import annotations

from jobline.v1 import store_pb2
from jobline_server.engine.producers import CallRecord, Producer


def encode_producer(producer: bytes, record: Producer) -> bytes:
    """A producer with the calls that may come again."""
    message = store_pb2.StoredProducer()
    message.id = producer
    message.answered_below = record.answered_below
    message.heard_ms = record.last_seen_ms
    message.sequences.extend(record.calls)
    message.first_ids.extend([call.first_id for call in record.calls.values()])
    message.counts.extend([call.jobs for call in record.calls.values()])
    message.digests.extend([call.digest for call in record.calls.values()])
    return message.SerializeToString()


def decode_producer(blob: bytes) -> tuple[bytes, Producer]:
    """The producer in a blob, and its id."""
    message = store_pb2.StoredProducer.FromString(blob)
    record = Producer(message.heard_ms, message.answered_below)
    rows = zip(message.first_ids, message.counts, message.digests, strict=True)
    calls = zip(message.sequences, rows, strict=True)
    record.calls = {sequence: CallRecord(*row) for sequence, row in calls}
    return message.id, record
