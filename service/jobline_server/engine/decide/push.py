"""Push: jobs come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobline_server.engine.commands import NewJob, Push, Pushed, RefusalKind, Refused
from jobline_server.engine.decide.queues import known_queue
from jobline_server.engine.entries import JobsPushed, LotPushed
from jobline_server.engine.keys import JOB_KEY, REQUEST_ID, KeyRecord, digest_of, hash_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import AckLevel, JobOptions, Now, PushOutcome

Exceptions = list[tuple[int, PushOutcome, int]]


def decide_push(shard: Shard, now: Now, command: Push) -> Pushed:
    """Stores jobs; the ids of those created are consecutive, in the order of the push.

    Raises `Refused` with QUEUE_FULL, SERVER_FULL, KEYS_FULL or IDEMPOTENCY_MISMATCH; nothing is
    stored then.
    """
    queue = shard.queues.get(command.queue)
    level = _level(queue, command.level)
    request_hash = b""
    if command.request_id:
        request_hash = hash_of(REQUEST_ID, command.queue, command.request_id)
        record = shard.keys.find(request_hash, now.wall_ms)
        if record is not None:
            level = AckLevel.MEMORY if request_hash in shard.keys.volatile else level
            return _repeated(shard, now, command, record, level)
    exceptions: Exceptions = []
    jobs = command.jobs
    if any(job.job_key for job in jobs):
        jobs = _without_duplicates(shard, now, command, level, exceptions)
    _check_room(shard, queue, command, jobs)
    first_id = shard.next_id()
    count = len(jobs) + len(command.payloads)
    if count:
        known_queue(shard, now, command.queue)
        # A queue that was created just now has taken an id.
        first_id = shard.next_id()
    if jobs:
        _emit_jobs(shard, now, command, jobs, level, request_hash)
    if command.payloads:
        _emit_lot(shard, now, command, level, request_hash)
    return Pushed(first_id, count, level, exceptions)


def _level(queue: Queue | None, asked: AckLevel | None) -> AckLevel:
    minimum = queue.settings.min_ack_level if queue is not None else None
    return max(asked or minimum or AckLevel.FSYNCED, minimum or AckLevel.MEMORY)


def _repeated(shard: Shard, now: Now, command: Push, record: KeyRecord, level: AckLevel) -> Pushed:
    """The very same call came before: it stands for the same jobs, and gets the same answer."""
    if record.digest != command.request_digest:
        raise Refused(
            RefusalKind.IDEMPOTENCY_MISMATCH,
            "request_id was used before with another request",
            field="request_id",
        )
    exceptions: Exceptions = []
    created = record.first_id
    for index, job in enumerate(command.jobs):
        known = _known_key(shard, now, command.queue, job.job_key) if job.job_key else None
        if known is None:
            if job.job_key:
                # Then it was known for another job; the key has gone since, with the reason.
                exceptions.append((index, PushOutcome.REFUSED, 0))
            else:
                created += 1
        elif known.job_id == created:
            created += 1
        else:
            exceptions.append((index, *_told(known, job, level)))
    return Pushed(record.first_id, record.count, level, exceptions)


class _Known(NamedTuple):
    """What a key stands for: a job, the digest of its payload, and whether it is never written."""

    job_id: int
    digest: int
    volatile: bool


def _known_key(shard: Shard, now: Now, queue: str, key: str) -> _Known | None:
    key_hash = hash_of(JOB_KEY, queue, key.encode())
    record = shard.keys.find(key_hash, now.wall_ms)
    if record is None:
        return None
    return _Known(record.first_id, record.digest, key_hash in shard.keys.volatile)


def _told(known: _Known, job: NewJob, level: AckLevel) -> tuple[PushOutcome, int]:
    """DUPLICATE if the job with this key is the same one, and kept as safely as is asked for now;
    otherwise REFUSED."""
    if known.digest != digest_of(job.payload):
        return PushOutcome.REFUSED, 0
    if known.volatile and level is not AckLevel.MEMORY:
        return PushOutcome.REFUSED, 0
    return PushOutcome.DUPLICATE, known.job_id


def _without_duplicates(
    shard: Shard, now: Now, command: Push, level: AckLevel, exceptions: Exceptions
) -> list[NewJob]:
    """The jobs whose keys are new; the others go to `exceptions`."""
    fresh: list[NewJob] = []
    first_id = _next_job_id(shard, command.queue)
    volatile = level is AckLevel.MEMORY
    seen: dict[str, _Known] = {}
    for index, job in enumerate(command.jobs):
        key = job.job_key
        known = seen.get(key) or _known_key(shard, now, command.queue, key) if key else None
        if known is None:
            if key:
                seen[key] = _Known(first_id + len(fresh), digest_of(job.payload), volatile)
            fresh.append(job)
            continue
        outcome, job_id = _told(known, job, level)
        if outcome is PushOutcome.REFUSED and command.atomic:
            raise Refused(
                RefusalKind.IDEMPOTENCY_MISMATCH,
                f"job_key is known for job {known.job_id} with another payload, or one that is "
                "never written",
                field=f"jobs[{index}].job_key",
            )
        exceptions.append((index, outcome, job_id))
    return fresh


def _next_job_id(shard: Shard, queue: str) -> int:
    """The id of the next job of this queue: a queue that is not there yet takes one itself."""
    return shard.next_id() + (queue not in shard.queues)


def _check_room(shard: Shard, queue: Queue | None, command: Push, jobs: Sequence[NewJob]) -> None:
    """Refuses what does not fit; consumers go on, so another try makes sense in a second. `jobs`
    are the rows that are new."""
    count = len(jobs) + len(command.payloads)
    load = shard.load
    most = queue.settings.max_waiting if queue is not None else None
    if queue is not None and most is not None and queue.scheduled + queue.ready + count > most:
        raise Refused(
            RefusalKind.QUEUE_FULL,
            f"queue {queue.name} has {queue.scheduled + queue.ready} of {most} waiting jobs",
            retry_after_ms=1_000,
        )
    if load.live_jobs + count > load.waiting_max:
        raise Refused(
            RefusalKind.SERVER_FULL,
            f"the server holds {load.live_jobs} of {load.waiting_max} jobs",
            retry_after_ms=1_000,
        )
    size = command.payloads.bytes_of(0, len(command.payloads))
    size += sum([len(job.payload) for job in jobs])
    if load.payload_bytes + size > load.waiting_bytes_max:
        raise Refused(
            RefusalKind.SERVER_FULL,
            f"the server holds {load.payload_bytes} of {load.waiting_bytes_max} payload bytes; "
            f"this push has {size} more",
            retry_after_ms=1_000,
        )
    keys = [job.job_key for job in jobs]
    wanted = len(keys) - keys.count("") + bool(command.request_id)
    if wanted and load.keys + wanted > load.keys_max:
        raise Refused(
            RefusalKind.KEYS_FULL,
            f"the server keeps {load.keys} of {load.keys_max} idempotency keys",
            retry_after_ms=60_000,
        )


def _emit_jobs(
    shard: Shard,
    now: Now,
    command: Push,
    jobs: Sequence[NewJob],
    level: AckLevel,
    request_hash: bytes,
) -> None:
    payloads = [job.payload for job in jobs]
    run_at_ms = [job.run_at_ms for job in jobs]
    delayed = max(run_at_ms) > now.wall_ms
    keys = [job.job_key for job in jobs]
    keyed = any(keys)
    fact = JobsPushed(
        at_ms=now.wall_ms,
        queue=command.queue,
        first_id=shard.next_id(),
        options=_folded([job.options for job in jobs]),
        payloads=payloads,
        run_at_ms=[_later(due_ms, now) for due_ms in run_at_ms] if delayed else [],
        job_keys=keys if keyed else [],
        digests=[digest_of(job.payload) if job.job_key else 0 for job in jobs] if keyed else [],
        request_hash=request_hash,
        request_digest=command.request_digest,
        volatile=level is AckLevel.MEMORY,
    )
    shard.emit(fact, volatile=fact.volatile)


def _folded(options: list[JobOptions]) -> list[JobOptions]:
    """One for all, where all have the same."""
    first = options[0]
    for own in options:
        if own is not first:
            return options
    return [first]


def _emit_lot(shard: Shard, now: Now, command: Push, level: AckLevel, request_hash: bytes) -> None:
    fact = LotPushed(
        at_ms=now.wall_ms,
        queue=command.queue,
        first_id=shard.next_id(),
        options=command.options,
        payloads=command.payloads,
        run_at_ms=_later(command.run_at_ms, now),
        request_hash=request_hash,
        request_digest=command.request_digest,
        volatile=level is AckLevel.MEMORY,
    )
    shard.emit(fact, volatile=fact.volatile)


def _later(run_at_ms: int, now: Now) -> int:
    return run_at_ms if run_at_ms > now.wall_ms else 0
