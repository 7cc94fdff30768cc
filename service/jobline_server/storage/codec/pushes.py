"""Facts of jobs that come in and become ready, between value and message.

A push of a thousand jobs is the largest thing the journal takes, so whole columns go over at once
and options are written from bytes that were made before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from jobline.v1 import entry_pb2, job_pb2
from jobline_server.engine.entries import (
    Fact,
    JobsPushed,
    JobsReady,
    JobsRetried,
    LotPushed,
)
from jobline_server.engine.limits import PRODUCER_ID_BYTES
from jobline_server.engine.producers import Call
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import JobOptions, JobState
from jobline_server.storage.codec.blocked import fill_blocked, parents_left_of
from jobline_server.storage.codec.records import fill_record, record_from_stored
from jobline_server.storage.codec.shared import fill_columns, interned_options, payloads_of
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.storage.codec.unique import claims_of, fill_claims
from jobline_server.wire.options import serialized_options
from jobline_server.wire.raw_fields import VARINT, tag_of, varint

_ENTRY = tag_of(entry_pb2.JournalBatch.DESCRIPTOR, "entries")
_AT_MS = tag_of(entry_pb2.Entry.DESCRIPTOR, "at_ms", VARINT)
_LOT_PUSHED = tag_of(entry_pb2.Entry.DESCRIPTOR, "lot_pushed")
_BLOCK = tag_of(entry_pb2.LotPushed.DESCRIPTOR, "payload_block")


def _fill_calls(message: entry_pb2.PushCalls, fact: LotPushed | JobsPushed) -> None:
    producers, sequences, answered_below, digests = zip(*fact.calls, strict=True)
    message.producers = b"".join(producers)
    message.sequences.extend(sequences)
    message.answered_below.extend(answered_below)
    message.digests.extend(digests)
    message.jobs.extend(fact.call_jobs)


def _calls_of(message: entry_pb2.PushCalls) -> tuple[Call, ...]:
    starts = range(0, len(message.producers), PRODUCER_ID_BYTES)
    producers = [message.producers[start : start + PRODUCER_ID_BYTES] for start in starts]
    columns = (message.sequences, message.answered_below, message.digests)
    return tuple(Call(*row) for row in zip(producers, *columns, strict=True))


def fill_lot_pushed(entry: entry_pb2.Entry, fact: LotPushed) -> None:
    """Writes it into an entry."""
    entry.lot_pushed.payload_block = fact.payloads.block
    _fill_lot(entry.lot_pushed, fact)


def lot_pushed_parts(fact: LotPushed) -> tuple[bytes, bytes]:
    """Returns an entry of a batch in two parts, of which the second is the block of payloads
    itself: where it is large, a message would copy it twice.
    """
    message = entry_pb2.LotPushed()
    _fill_lot(message, fact)
    block = fact.payloads.block
    lot = b"".join([message.SerializeToString(), _BLOCK, varint(len(block))])
    entry = b"".join([_AT_MS, varint(fact.at_ms), _LOT_PUSHED, varint(len(lot) + len(block)), lot])
    return b"".join([_ENTRY, varint(len(entry) + len(block)), entry]), block


def _fill_lot(message: entry_pb2.LotPushed, fact: LotPushed) -> None:
    """Writes all but the block."""
    message.queue = fact.queue
    message.first_id = fact.first_id
    message.options = serialized_options(fact.options)
    fill_columns(message, fact.payloads)
    message.count = len(fact.payloads)
    message.aged_ms = fact.aged_ms
    if fact.digests:
        message.digests.extend(fact.digests)
    if fact.calls:
        _fill_calls(message.calls, fact)
    if fact.run_at_ms:
        message.run_at_ms = fact.run_at_ms
    if fact.request_hash:
        message.request_hash = fact.request_hash
        message.request_digest = fact.request_digest
    if fact.stored_rows:
        message.stored_rows = fact.stored_rows


def lot_pushed(at_ms: int, message: entry_pb2.LotPushed) -> LotPushed:
    """Reads it."""
    return LotPushed(
        at_ms=at_ms,
        queue=message.queue,
        first_id=message.first_id,
        options=interned_options(message.options),
        payloads=payloads_of(message, message.count),
        run_at_ms=message.run_at_ms,
        digests=tuple(message.digests),
        request_hash=message.request_hash,
        request_digest=message.request_digest,
        aged_ms=message.aged_ms or at_ms,
        calls=_calls_of(message.calls),
        call_jobs=tuple(message.calls.jobs),
        stored_rows=message.stored_rows,
    )


def fill_jobs_pushed(entry: entry_pb2.Entry, fact: JobsPushed) -> None:
    """Writes it into an entry: each distinct options object once, and an index a job."""
    message = entry.jobs_pushed
    message.queue = fact.queue
    message.first_id = fact.first_id
    _fill_options(message, fact.options)
    message.payloads.extend(fact.payloads)
    message.run_at_ms.extend(fact.run_at_ms)
    message.job_keys.extend(fact.job_keys)
    message.digests.extend(fact.digests)
    message.aged_ms = fact.aged_ms
    if fact.ties:
        _fill_ties(message, fact.ties)
    if fact.blocked:
        fill_blocked(message, fact)
    if fact.calls:
        _fill_calls(message.calls, fact)
    if fact.request_hash:
        message.request_hash = fact.request_hash
        message.request_digest = fact.request_digest
    if fact.stored_rows:
        message.stored_rows = fact.stored_rows


def _fill_ties(message: entry_pb2.JobsPushed, ties: list[Ties]) -> None:
    message.groups.extend([one.group for one in ties])
    message.unique_keys.extend([one.unique_key for one in ties])
    message.parents.extend([parent for one in ties for parent in one.parents])
    message.parent_counts.extend([len(one.parents) for one in ties])
    message.flow_roots.extend([at for at, one in enumerate(ties) if one.is_flow_root])
    if message.parents and any(one.on_failure for one in ties):
        message.on_failure.extend([one.on_failure for one in ties])
    fill_claims(message, ties)


def _ties_of(message: entry_pb2.JobsPushed) -> list[Ties]:
    ties: list[Ties] = []
    parents = iter(message.parents)
    columns = zip(message.groups, message.unique_keys, message.parent_counts, strict=True)
    for (group, unique_key, count), claim in zip(columns, claims_of(message), strict=False):
        of_job = tuple(islice(parents, count))
        has_any = group or unique_key or of_job
        ties.append(Ties(group, unique_key, of_job, claim) if has_any else NO_TIES)
    for at in message.flow_roots:
        ties[at] = replace(ties[at], is_flow_root=True)
    for at, policies in enumerate(message.on_failure):
        if policies:
            ties[at] = replace(ties[at], on_failure=policies)
    return ties


def _fill_options(message: entry_pb2.JobsPushed, options: list[JobOptions]) -> None:
    identities = list(map(id, options))
    distinct = dict(zip(identities, options, strict=True))
    message.options.extend(map(serialized_options, distinct.values()))
    if len(options) > 1:
        index_of = {identity: index for index, identity in enumerate(distinct)}
        message.option_indexes.extend(map(index_of.__getitem__, identities))


def jobs_pushed(at_ms: int, message: entry_pb2.JobsPushed) -> JobsPushed:
    """Reads it."""
    options = list(map(interned_options, message.options))
    if message.option_indexes:
        options = list(map(options.__getitem__, message.option_indexes))
    return JobsPushed(
        at_ms=at_ms,
        queue=message.queue,
        first_id=message.first_id,
        options=options,
        payloads=list(message.payloads),
        run_at_ms=list(message.run_at_ms),
        job_keys=list(message.job_keys),
        digests=list(message.digests),
        request_hash=message.request_hash,
        request_digest=message.request_digest,
        aged_ms=message.aged_ms or at_ms,
        calls=_calls_of(message.calls),
        call_jobs=tuple(message.calls.jobs),
        stored_rows=message.stored_rows,
        ties=_ties_of(message),
        blocked=list(message.blocked),
        parents_left=parents_left_of(message),
        blocked_until_ms=list(message.blocked_until_ms),
    )


def fill_jobs_ready(entry: entry_pb2.Entry, fact: JobsReady) -> None:
    """Writes it into an entry."""
    message = entry.jobs_ready
    message.queue = fact.queue
    message.ids.extend(fact.ids)
    message.lots.extend(fact.lots)
    message.promoted = fact.promoted


def jobs_ready(at_ms: int, message: entry_pb2.JobsReady) -> JobsReady:
    """Reads it."""
    return JobsReady(
        at_ms=at_ms,
        queue=message.queue,
        ids=list(message.ids),
        lots=list(message.lots),
        promoted=message.promoted,
    )


def fill_jobs_retried(entry: entry_pb2.Entry, fact: JobsRetried) -> None:
    """Writes it into an entry."""
    message = entry.jobs_retried
    message.SetInParent()
    for record in fact.jobs:
        fill_record(message.jobs.add(), record)
    message.states.extend(job_pb2.JobState.ValueType(state) for state in fact.states)
    message.automatic = fact.automatic
    message.outcomes.extend(job_pb2.JobState.ValueType(state) for state in fact.outcomes)


def jobs_retried(at_ms: int, message: entry_pb2.JobsRetried) -> JobsRetried:
    """Reads it."""
    return JobsRetried(
        at_ms=at_ms,
        jobs=list(map(record_from_stored, message.jobs)),
        states=[JobState(state) for state in message.states],
        automatic=message.automatic,
        outcomes=[JobState(state) for state in message.outcomes],
    )


def _ready(fact: JobsReady) -> Iterator[Fact]:
    for first_id in fact.lots:
        yield replace(fact, ids=[], lots=[first_id])
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id], lots=[])


def _retried(fact: JobsRetried) -> Iterator[Fact]:
    for at, (job, state) in enumerate(zip(fact.jobs, fact.states, strict=True)):
        outcomes = fact.outcomes[at : at + 1]
        yield replace(fact, jobs=[job], states=[state], outcomes=outcomes)


FACTS: FactTable = {
    LotPushed: FactRow("lot_pushed", fill_lot_pushed, lot_pushed, whole),
    JobsPushed: FactRow("jobs_pushed", fill_jobs_pushed, jobs_pushed, whole),
    JobsReady: FactRow("jobs_ready", fill_jobs_ready, jobs_ready, _ready),
    JobsRetried: FactRow("jobs_retried", fill_jobs_retried, jobs_retried, _retried),
}
