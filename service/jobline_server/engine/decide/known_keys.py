"""Known keys: separates the new jobs of a push from those whose keys or call came before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.decide.held_keys import Deviation, PushDeviations
from jobline_server.engine.decide.unique import Claims, outcome_of_kept
from jobline_server.engine.decide.unique_holders import key_holder
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.keys import JOB_KEY, KeyRecord, digest_of, hash_of
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import CallRecord
from jobline_server.engine.push_fields import job_key_field
from jobline_server.engine.values import STORED_OUTCOMES, AckLevel, Now, PushOutcome
from jobline_server.engine.view import ShardView

_MISMATCH = RefusalKind.IDEMPOTENCY_MISMATCH


class KnownKey(NamedTuple):
    """The job that a key names, the digest of its payload, and whether it is volatile."""

    job_id: int
    digest: int
    volatile: bool


KnownKeys = Mapping[str, KnownKey]


def repeated(
    shard: ShardView, now: Now, command: Push, record: KeyRecord | CallRecord, level: AckLevel
) -> Pushed:
    """Returns the reply to a call that came before: the same jobs, and the same deviations."""
    digest, field = command.request_digest, "request_id"
    if command.calls:
        digest, field = command.calls[0].digest, "producer.sequence"
    if record.digest != digest:
        raise Refused(
            RefusalKind.IDEMPOTENCY_MISMATCH,
            f"{field} was used before with another request",
            field=field,
        )
    exceptions: PushDeviations = []
    count = record.count if isinstance(record, KeyRecord) else record.jobs
    if count == len(command.rows) + len(command.payloads):
        # All were stored, whatever has become of their keys since.
        return Pushed(record.first_id, count, level, exceptions)
    created = record.first_id
    stored = record.stored_rows
    for index, (key, payload) in enumerate(_keys_and_payloads(command)):
        if stored and index < len(command.rows):
            if stored[index >> 3] >> (index & 7) & 1:
                created += 1
            else:
                exceptions.append((index, *_not_stored(shard, now, command, index, level)))
            continue
        known = _known_key(shard, now, command.queue, key) if key else None
        if known is None:
            key_hash = hash_of(JOB_KEY, command.queue, key.encode())
            if key and not shard.keys.was_forgotten(key_hash, created):
                # The call created no job for this key: it was another job's, and has expired since.
                exceptions.append((index, _MISMATCH, 0))
            else:
                created += 1
        elif known.job_id == created:
            created += 1
        else:
            exceptions.append((index, *_outcome_of(known, payload, level)))
    return Pushed(record.first_id, count, level, exceptions)


def _not_stored(
    shard: ShardView, now: Now, command: Push, index: int, level: AckLevel
) -> Deviation:
    """Returns what became of a row that its call did not store: the job that has its job key, or
    the one that holds its unique key now, 0 if that has ended.
    """
    rows, queue = command.rows, command.queue
    known = _known_key(shard, now, queue, rows.job_keys[index]) if rows.job_keys else None
    if known is not None:
        return _outcome_of(known, rows.payloads[index], level)
    unique_key = rows.ties[index].unique_key if rows.ties else ""
    outcome = outcome_of_kept(shard, queue, rows.options[index])
    if not unique_key:
        return _MISMATCH, 0
    if isinstance(outcome, RefusalKind):
        return outcome, 0
    return outcome, key_holder(shard, now, queue, unique_key) or 0


def _keys_and_payloads(command: Push) -> Iterator[tuple[str, bytes]]:
    """Yields the key ("" for none) and payload of each job of a push, in order; skips `payloads` if
    none has a key.
    """
    rows, payloads = command.rows, command.payloads
    of_rows = zip(rows.job_keys or _none(rows), rows.payloads, strict=True)
    keys = job_keys_of(payloads)
    return chain(of_rows, zip(keys, payloads, strict=True) if keys else ())


def _none(rows: JobColumns) -> list[str]:
    return [""] * len(rows)


def job_keys_of(payloads: Payloads) -> list[str]:
    """Returns the keys of payloads, "" for those without one; empty if none has one."""
    return [key.decode() for key in payloads.job_keys]


def digests_of(keys: Sequence[str], new_keys: KnownKeys) -> tuple[int, ...]:
    """Returns the digests of payloads with these keys, and 0 for those without one."""
    return tuple([new_keys[key].digest if key else 0 for key in keys])


def without_duplicates(
    shard: ShardView,
    now: Now,
    command: Push,
    level: AckLevel,
    exceptions: PushDeviations,
    claims: Claims | None,
) -> tuple[JobColumns, Payloads, KnownKeys]:
    """Returns the jobs whose keys are new, and those keys; the others go to `exceptions`. The new
    payloads stay together.
    """
    rows, payloads = command.rows, command.payloads
    new_keys = _NewKeys(shard, now, command, level, exceptions)
    of_rows = rows.job_keys or _none(rows)
    fresh = new_keys.pick(of_rows, rows.payloads, 0, claims)
    if claims is not None:
        rows = claims.put_into(rows, fresh)
    elif len(fresh) < len(rows):
        rows = rows.picked(fresh)
    keys = job_keys_of(payloads)
    if keys:
        fresh = new_keys.pick(keys, payloads, len(command.rows))
        payloads = payloads.picked(fresh) if len(fresh) < len(payloads) else payloads
    return rows, payloads, new_keys.found


class _NewKeys:
    """Finds the jobs whose keys are new, to the shard and within their push. `found` has the new
    keys, `_next_id` is the id that the next new job will get.
    """

    __slots__ = ("_command", "_exceptions", "_level", "_next_id", "_now", "_shard", "found")

    def __init__(
        self,
        shard: ShardView,
        now: Now,
        command: Push,
        level: AckLevel,
        exceptions: PushDeviations,
    ) -> None:
        self._shard = shard
        self._now = now
        self._command = command
        self._level = level
        self._exceptions = exceptions
        self.found: dict[str, KnownKey] = {}
        # A queue that does not exist yet takes an id itself.
        self._next_id = shard.next_id() + (command.queue not in shard.queues)

    def pick(
        self,
        keys: Iterable[str],
        payloads: Iterable[bytes],
        first_index: int,
        claims: Claims | None = None,
    ) -> list[int]:
        """Returns the indexes of the new jobs; the others go to the exceptions, with indexes
        counted from `first_index` on. `claims` decides the unique keys of jobs that are new.
        """
        shard, now, queue, found = self._shard, self._now, self._command.queue, self.found
        volatile = self._level is AckLevel.MEMORY
        fresh: list[int] = []
        for index, (key, payload) in enumerate(zip(keys, payloads, strict=True)):
            known = found.get(key) or _known_key(shard, now, queue, key) if key else None
            if known is None:
                own = None if claims is None else claims.decide(index, self._next_id)
                if own is not None:
                    self._exceptions.append((first_index + index, *own))
                    if own[0] not in STORED_OUTCOMES:
                        continue
                if key:
                    found[key] = KnownKey(self._next_id, digest_of(payload), volatile)
                self._next_id += 1
                fresh.append(index)
                continue
            outcome, job_id = _outcome_of(known, payload, self._level)
            if outcome is _MISMATCH and self._command.atomic:
                why = (
                    # That job has no id: nothing of this push is stored.
                    "another job of this push has this job_key and another payload"
                    if key in found
                    else f"job_key is known for job {known.job_id} with another payload, or one "
                    "that is never written"
                )
                field = job_key_field(self._command, first_index + index)
                raise Refused(_MISMATCH, why, field=field)
            if claims is not None:
                claims.note_id(index, job_id)
            self._exceptions.append((first_index + index, outcome, job_id))
        return fresh


def _known_key(shard: ShardView, now: Now, queue: str, key: str) -> KnownKey | None:
    key_hash = hash_of(JOB_KEY, queue, key.encode())
    record = shard.keys.find(key_hash, shard.age.at(now))
    if record is None:
        return None
    return KnownKey(record.first_id, record.digest, key_hash in shard.keys.volatile)


def _outcome_of(known: KnownKey, payload: bytes, level: AckLevel) -> Deviation:
    """Returns DUPLICATE and the job's id if the job with this key has the same payload and is as
    durable as `level` asks; otherwise why it is refused, and 0.
    """
    if known.digest != digest_of(payload):
        return _MISMATCH, 0
    if known.volatile and level is not AckLevel.MEMORY:
        return _MISMATCH, 0
    return PushOutcome.DUPLICATE, known.job_id
