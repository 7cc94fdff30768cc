"""Facts ↔ the bytes of one journal row.

`_ENCODERS` and `_DECODERS` are tables by fact, so that a fact that was forgotten is found by a test
that compares them with `entries.Fact`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobline.v1 import entry_pb2
from jobline_server.engine import entries
from jobline_server.engine.entries import Fact
from jobline_server.storage.codec import ends, leases, pushes, queues


class UnknownFact(Exception):
    """The journal holds a fact that this version does not know: it was written by a newer one."""


# Each function takes the very fact that it is registered for, which no type of a table can say.
_ENCODERS: dict[type, Callable[[entry_pb2.Entry, Any], None]] = {
    entries.LotPushed: pushes.fill_lot_pushed,
    entries.JobsPushed: pushes.fill_jobs_pushed,
    entries.JobsReady: pushes.fill_jobs_ready,
    entries.JobsRetried: pushes.fill_jobs_retried,
    entries.JobsLeased: leases.fill_jobs_leased,
    entries.JobFailed: leases.fill_job_failed,
    entries.JobsStalled: leases.fill_jobs_stalled,
    entries.JobsReleased: leases.fill_jobs_released,
    entries.JobReported: leases.fill_job_reported,
    entries.CancelRequested: leases.fill_cancel_requested,
    entries.JobsCompleted: ends.fill_jobs_completed,
    entries.JobDied: ends.fill_job_died,
    entries.JobsCancelled: ends.fill_jobs_cancelled,
    entries.JobsAgedOut: ends.fill_jobs_aged_out,
    entries.JobsDeleted: ends.fill_jobs_deleted,
    entries.QueueChanged: queues.fill_queue_changed,
    entries.QueuePaused: queues.fill_queue_paused,
    entries.QueueResumed: queues.fill_queue_resumed,
    entries.QueueDeleted: queues.fill_queue_deleted,
}

_DECODERS: dict[str, Callable[[int, Any], Fact]] = {
    "lot_pushed": pushes.lot_pushed,
    "jobs_pushed": pushes.jobs_pushed,
    "jobs_ready": pushes.jobs_ready,
    "jobs_retried": pushes.jobs_retried,
    "jobs_leased": leases.jobs_leased,
    "job_failed": leases.job_failed,
    "jobs_stalled": leases.jobs_stalled,
    "jobs_released": leases.jobs_released,
    "job_reported": leases.job_reported,
    "cancel_requested": leases.cancel_requested,
    "jobs_completed": ends.jobs_completed,
    "job_died": ends.job_died,
    "jobs_cancelled": ends.jobs_cancelled,
    "jobs_staled": ends.jobs_aged_out,
    "jobs_deleted": ends.jobs_deleted,
    "queue_changed": queues.queue_changed,
    "queue_paused": queues.queue_paused,
    "queue_resumed": queues.queue_resumed,
    "queue_deleted": queues.queue_deleted,
}

# Earlier versions wrote that keys had passed their window; now each key knows that by itself.
_NO_FACTS = frozenset({"keys_expired"})


def encode_batch(facts: Sequence[Fact]) -> bytes:
    """Facts of one shard as the blob of one journal row. None of them is volatile."""
    batch = entry_pb2.JournalBatch()
    add = batch.entries.add
    for fact in facts:
        entry = add()
        entry.at_ms = fact.at_ms
        _ENCODERS[type(fact)](entry, fact)
    return batch.SerializeToString()


def decode_batch(blob: bytes) -> list[Fact]:
    """The facts of a journal row, in order."""
    facts: list[Fact] = []
    for entry in entry_pb2.JournalBatch.FromString(blob).entries:
        name = entry.WhichOneof("fact")
        if name is None:
            raise UnknownFact("the journal holds a fact of a newer version of jobline-server")
        if name not in _NO_FACTS:
            facts.append(_DECODERS[name](entry.at_ms, getattr(entry, name)))
    return facts
