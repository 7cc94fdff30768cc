"""Push: stores new jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.decide.batch_members import check_batches, has_members
from jobline_server.engine.decide.calls import (
    check_new_calls,
    check_room_for_calls,
    find_call,
)
from jobline_server.engine.decide.fairness import refuse_priorities
from jobline_server.engine.decide.held_keys import PushDeviations
from jobline_server.engine.decide.known_keys import (
    KnownKeys,
    digests_of,
    job_keys_of,
    repeated,
    without_duplicates,
)
from jobline_server.engine.decide.limiters import check_limiters
from jobline_server.engine.decide.lot_sizes import lots_of
from jobline_server.engine.decide.outcomes import NO_OUTCOMES, Outcomes
from jobline_server.engine.decide.parents import (
    Parents,
    emit_jobs,
    end_failed,
    has_parents,
    parents_of,
)
from jobline_server.engine.decide.queue_ttl import with_ttl
from jobline_server.engine.decide.queues import known_queue
from jobline_server.engine.decide.unique import Claims
from jobline_server.engine.decide.unique_holders import blocked_rows, has_unique_keys
from jobline_server.engine.entries import JobsPushed, LotPushed
from jobline_server.engine.group_room import GroupRoom
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.keys import REQUEST_ID, KeyRecord, hash_of
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.producers import CallRecord
from jobline_server.engine.queue import Queue
from jobline_server.engine.room import Room
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import AckLevel, JobOptions, Now
from jobline_server.engine.view import ShardView

# Enum attribute access is slow before Python 3.12.
_MEMORY, _FSYNCED = AckLevel.MEMORY, AckLevel.FSYNCED


class _Terms(NamedTuple):
    """What the facts of one push share, beside the command."""

    level: AckLevel
    request_hash: bytes
    new_keys: KnownKeys
    stored_rows: bytes
    parents: Parents | None


def decide_push(
    shard: ShardView, now: Now, command: Push, outcomes: Outcomes = NO_OUTCOMES
) -> Pushed:
    """Stores jobs; the new ones get consecutive ids, in order. `outcomes` are known states of jobs
    that they depend on.

    Raises `OutcomesNeeded`, or `Refused` with QUEUE_FULL, GROUP_FULL, GROUPS_FULL, SERVER_FULL,
    KEYS_FULL, REQUEST_IDS_FULL, PRODUCERS_FULL, DEPENDENCIES_FULL, CALL_OVER, LIMITER_NOT_FOUND,
    BATCH_NOT_FOUND, BATCH_COMPLETE, JOB_NOT_FOUND, INVALID_FIELD, IDEMPOTENCY_MISMATCH,
    UNIQUE_KEY_HELD or JOB_AWAITED.
    """
    queue = shard.queues.get(command.queue)
    if queue is not None and queue.settings.ttl_ms:
        command = with_ttl(command, queue.settings.ttl_ms)
    level = _level(queue, command)
    claims = _claims_of(shard, now, queue, command) if command.rows.ties else None
    request_hash = b""
    if command.request_id:
        request_hash = hash_of(REQUEST_ID, command.queue, command.request_id)
    known = _known_push(shard, now, command, request_hash)
    if known is not None:
        return repeated(shard, now, command, known[0], AckLevel.MEMORY if known[1] else level)
    exceptions: PushDeviations = []
    rows, payloads = command.rows, command.payloads
    new_keys: KnownKeys = {}
    has_keys = rows.job_keys or (payloads.columns is not None and payloads.job_keys)
    if has_keys or claims is not None:
        found = without_duplicates(shard, now, command, level, exceptions, claims)
        rows, payloads, new_keys = found
    depends = (rows.ties or rows.parent_indexes) and has_parents(rows)
    parents = parents_of(shard, command, rows, exceptions, outcomes) if depends else None
    _check_room(shard, queue, command, rows, payloads, claims)
    if command.calls:
        check_room_for_calls(shard, shard.age.at(now), command.calls)
    first_id = shard.next_id()
    count = len(rows.payloads) + len(payloads)
    if count:
        known_queue(shard, now, command.queue, has_room=command.has_room)
        # A queue that was created just now took an id.
        first_id = shard.next_id()
        stored_rows = b"" if claims is None else claims.stored_rows
        terms = _Terms(level, request_hash, new_keys, stored_rows, parents)
        _emit_all(shard, now, command, rows, payloads, first_id, terms)
    if claims is not None:
        claims.emit()
    if parents is not None:
        end_failed(shard, now, parents)
    return Pushed(first_id, count, level, exceptions)


def _claims_of(shard: ShardView, now: Now, queue: Queue | None, command: Push) -> Claims | None:
    """Returns the claims of a push to unique keys; None without any. Refuses what does not go
    together with the groups of its jobs.
    """
    refuse_priorities(queue, command)
    return Claims(shard, now, command) if has_unique_keys(command.rows) else None


def _level(queue: Queue | None, command: Push) -> AckLevel:
    """Returns the level of a push: what it asks for, what its queue demands, and BUFFERED at least
    for jobs with ties: a crash neither breaks the order of a group nor frees a key, nor loses a job
    that waits for others before they end; and for those of a batch, which counts each to its end.
    """
    minimum = queue.settings.min_ack_level if queue is not None else None
    level = max(command.level or minimum or _FSYNCED, minimum or _MEMORY)
    rows = command.rows
    if level is _MEMORY and (rows.ties or rows.parent_indexes or has_members(command)):
        return AckLevel.BUFFERED
    return level


def _known_push(
    shard: ShardView, now: Now, command: Push, request_hash: bytes
) -> tuple[KeyRecord | CallRecord, bool] | None:
    """Returns the record of the same push if it came before, by its request id or its only call,
    and whether its jobs are volatile. Refuses several calls unless all are new.
    """
    if request_hash:
        record = shard.requests.find(request_hash, shard.age.at(now))
        return None if record is None else (record, request_hash in shard.requests.volatile)
    if len(command.calls) > 1:
        check_new_calls(shard, shard.age.at(now), command.calls)
        return None
    return find_call(shard, shard.age.at(now), command.calls[0]) if command.calls else None


def _check_room(
    shard: ShardView,
    queue: Queue | None,
    command: Push,
    rows: JobColumns,
    payloads: Payloads,
    claims: Claims | None,
) -> None:
    """Refuses a push that does not fit. `rows` and `payloads` are its new jobs."""
    if command.has_room:
        return
    if rows.has_rules or command.options.rules is not NO_RULES:
        check_limiters(shard.limiters, command, rows, payloads)
        check_batches(shard, command, rows, payloads)
    load = shard.load
    count = len(rows.payloads) + len(payloads)
    size = payloads.bytes_of(0, len(payloads)) + sum(map(len, rows.payloads))
    leaving: Sequence[str] = ()
    if claims is not None:
        claims.check_room()
        leaving, replaced_bytes = claims.replaced_load()
        count, size = count - len(leaving), size - replaced_bytes
    # One that takes no more room than it leaves is never refused for want of it.
    refusal = Room(load).refusal(queue, count, size) if count > 0 or size > 0 else None
    if refusal is None and rows.ties:
        refusal = GroupRoom(load).refusal(queue, [ties.group for ties in rows.ties], leaving)
    if refusal is not None:
        try:
            raise refusal
        finally:
            # The exception holds this frame: without a cycle, a refused push is freed at once.
            del refusal
    keys = rows.job_keys
    if payloads.columns is not None:
        keys = keys + job_keys_of(payloads)
    wanted = len(keys) - keys.count("")
    if wanted and load.keys + wanted > load.keys_max:
        raise Refused(
            RefusalKind.KEYS_FULL,
            f"the server keeps {load.keys} of {load.keys_max} job keys",
            retry_after_ms=60_000,
        )
    if command.request_id and load.requests >= load.requests_max:
        raise Refused(
            RefusalKind.REQUEST_IDS_FULL,
            f"the server keeps {load.requests} of {load.requests_max} request ids",
            retry_after_ms=60_000,
        )


def _emit_all(
    shard: ShardView,
    now: Now,
    command: Push,
    rows: JobColumns,
    payloads: Payloads,
    first_id: int,
    terms: _Terms,
) -> None:
    """Emits the facts of a push; ids are given in the order of the push."""
    lots = lots_of(payloads, first_id + len(rows.payloads))
    to_front = command.options.rules.lifo
    if to_front:
        # Each fact goes before those already there: the last one first, so that the order is kept.
        lots.reverse()
    elif rows.payloads:
        _emit_jobs(shard, now, command, rows, first_id, terms)
    for lot_id, of_lot in lots:
        _emit_lot(shard, now, command, of_lot, lot_id, terms)
    if to_front and rows.payloads:
        _emit_jobs(shard, now, command, rows, first_id, terms)


def _emit_jobs(
    shard: ShardView, now: Now, command: Push, rows: JobColumns, first_id: int, terms: _Terms
) -> None:
    run_at_ms = [_later(due_ms, now) for due_ms in rows.run_at_ms]
    keys = rows.job_keys if any(rows.job_keys) else []
    fact = JobsPushed(
        at_ms=now.wall_ms,
        queue=command.queue,
        first_id=first_id,
        options=_folded(rows.options),
        payloads=rows.payloads,
        run_at_ms=run_at_ms if any(run_at_ms) else [],
        job_keys=keys,
        digests=list(digests_of(keys, terms.new_keys)),
        request_hash=terms.request_hash,
        request_digest=command.request_digest,
        aged_ms=shard.age.at(now),
        calls=command.calls,
        call_jobs=(len(rows),) * len(command.calls),
        stored_rows=terms.stored_rows,
        ties=rows.ties,
        blocked=blocked_rows(rows),
        volatile=terms.level is AckLevel.MEMORY,
    )
    emit_jobs(shard, now, fact, rows, terms.parents)


def _folded(options: list[JobOptions]) -> list[JobOptions]:
    """Returns a list of one if all jobs have the same options."""
    first = options[0]
    for job_options in options:
        if job_options is not first:
            return options
    return [first]


def _emit_lot(
    shard: ShardView, now: Now, command: Push, payloads: Payloads, first_id: int, terms: _Terms
) -> None:
    fact = LotPushed(
        at_ms=now.wall_ms,
        queue=command.queue,
        first_id=first_id,
        options=command.options,
        payloads=payloads,
        run_at_ms=_later(command.run_at_ms, now),
        digests=digests_of(job_keys_of(payloads), terms.new_keys) if terms.new_keys else (),
        request_hash=terms.request_hash,
        request_digest=command.request_digest,
        aged_ms=shard.age.at(now),
        calls=command.calls,
        call_jobs=command.call_jobs or (len(payloads),) * len(command.calls),
        stored_rows=terms.stored_rows,
        volatile=terms.level is AckLevel.MEMORY,
    )
    shard.emit(fact, volatile=fact.volatile)


def _later(run_at_ms: int, now: Now) -> int:
    return run_at_ms if run_at_ms > now.wall_ms else 0
