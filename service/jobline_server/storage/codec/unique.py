"""Facts of unique keys, and the claims of jobs on theirs, between value and message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

from jobline.v1 import entry_pb2, store_pb2
from jobline_server.engine.entries import Fact
from jobline_server.engine.ties import NO_CLAIM, Claim, Ties
from jobline_server.engine.unique_entries import (
    JobsReplaced,
    UniqueKeyForgotten,
    UniqueKeysExtended,
)
from jobline_server.storage.codec.table import FactRow, FactTable, whole

_PARKED, _THROTTLES = 1, 2


def _flags_of(claim: Claim) -> int:
    return _PARKED * claim.parked | _THROTTLES * claim.throttles


def _claim(until_ms: int, first_ms: int, flags: int) -> Claim:
    if not (until_ms or first_ms or flags):
        return NO_CLAIM
    return Claim(until_ms, first_ms, bool(flags & _PARKED), bool(flags & _THROTTLES))


def fill_claim(message: store_pb2.StoredJob, claim: Claim) -> None:
    """Writes the claim of a job."""
    if claim is not NO_CLAIM:
        message.unique_until_ms = claim.until_ms
        message.unique_first_ms = claim.first_ms
        message.unique_flags = _flags_of(claim)


def claim_of(message: store_pb2.StoredJob) -> Claim:
    """Returns the claim in a message; `NO_CLAIM` itself if there is nothing to say."""
    return _claim(message.unique_until_ms, message.unique_first_ms, message.unique_flags)


def fill_claims(message: entry_pb2.JobsPushed, ties: Sequence[Ties]) -> None:
    """Writes the claims of pushed jobs, if there is anything to say."""
    claims = [of_job.claim for of_job in ties]
    if claims.count(NO_CLAIM) < len(claims):
        message.unique_until_ms.extend([claim.until_ms for claim in claims])
        message.unique_first_ms.extend([claim.first_ms for claim in claims])
        message.unique_flags.extend(map(_flags_of, claims))


def claims_of(message: entry_pb2.JobsPushed) -> Iterator[Claim]:
    """Yields the claim of each pushed job; without end if there is nothing to say."""
    if not message.unique_flags:
        return repeat(NO_CLAIM)
    columns = message.unique_until_ms, message.unique_first_ms, message.unique_flags
    return map(_claim, *columns)


def fill_jobs_replaced(entry: entry_pb2.Entry, fact: JobsReplaced) -> None:
    """Writes it into an entry."""
    entry.jobs_replaced.queue = fact.queue
    entry.jobs_replaced.ids.extend(fact.ids)


def jobs_replaced(at_ms: int, message: entry_pb2.JobsReplaced) -> JobsReplaced:
    """Reads it."""
    return JobsReplaced(at_ms=at_ms, queue=message.queue, ids=list(message.ids))


def fill_unique_keys_extended(entry: entry_pb2.Entry, fact: UniqueKeysExtended) -> None:
    """Writes it into an entry."""
    message = entry.unique_keys_extended
    message.queue = fact.queue
    message.unique_keys.extend(fact.unique_keys)
    message.ids.extend(fact.ids)
    message.until_ms.extend(fact.until_ms)
    message.aged_ms = fact.aged_ms


def unique_keys_extended(at_ms: int, message: entry_pb2.UniqueKeysExtended) -> UniqueKeysExtended:
    """Reads it."""
    return UniqueKeysExtended(
        at_ms=at_ms,
        queue=message.queue,
        unique_keys=list(message.unique_keys),
        ids=list(message.ids),
        until_ms=list(message.until_ms),
        aged_ms=message.aged_ms,
    )


def unique_key_extended(at_ms: int, message: entry_pb2.UniqueKeyExtended) -> UniqueKeysExtended:
    """Reads the fact of one key."""
    return UniqueKeysExtended(
        at_ms=at_ms,
        queue=message.queue,
        unique_keys=[message.unique_key],
        ids=[message.id],
        until_ms=[message.until_ms],
        aged_ms=message.aged_ms,
    )


def fill_unique_key_forgotten(entry: entry_pb2.Entry, fact: UniqueKeyForgotten) -> None:
    """Writes it into an entry."""
    message = entry.unique_key_forgotten
    message.queue = fact.queue
    message.unique_key = fact.unique_key
    message.aged_ms = fact.aged_ms


def unique_key_forgotten(at_ms: int, message: entry_pb2.UniqueKeyForgotten) -> UniqueKeyForgotten:
    """Reads it."""
    return UniqueKeyForgotten(at_ms, message.queue, message.unique_key, message.aged_ms)


def _replaced(fact: JobsReplaced) -> Iterator[Fact]:
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id])


def _extended(fact: UniqueKeysExtended) -> Iterator[Fact]:
    for key, job_id, until_ms in zip(fact.unique_keys, fact.ids, fact.until_ms, strict=True):
        yield replace(fact, unique_keys=[key], ids=[job_id], until_ms=[until_ms])


# Facts that earlier versions wrote.
READ_EARLIER = {"unique_key_extended": unique_key_extended}

FACTS: FactTable = {
    JobsReplaced: FactRow("jobs_replaced", fill_jobs_replaced, jobs_replaced, _replaced),
    UniqueKeysExtended: FactRow(
        "unique_keys_extended", fill_unique_keys_extended, unique_keys_extended, _extended
    ),
    UniqueKeyForgotten: FactRow(
        "unique_key_forgotten", fill_unique_key_forgotten, unique_key_forgotten, whole
    ),
}
