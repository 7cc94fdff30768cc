"""Applies the facts that add jobs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from jobline_server.engine import limits
from jobline_server.engine.apply import batches, groups
from jobline_server.engine.apply.blocked import block_new
from jobline_server.engine.apply.bookkeeping import add_jobs, add_lot, mark_lot
from jobline_server.engine.apply.claims import take_unique_key
from jobline_server.engine.apply.lanes import put_at_tail, put_in_lane
from jobline_server.engine.apply.phases import retain_phases
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.endings import EndedChange
from jobline_server.engine.entries import JobsPushed, JobsRetried, LotPushed
from jobline_server.engine.expiring import expect_expiry
from jobline_server.engine.job import Details, Job
from jobline_server.engine.keys import JOB_KEY, KeyRecord, hash_of
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, live
from jobline_server.engine.tables import part_of
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobState, LeaseReason

# Enum attribute access is slow before Python 3.12.
_READY, _SCHEDULED = JobState.READY, JobState.SCHEDULED
_PUSHED, _FOR_LATER = Move.PUSHED, Move.PUSHED_FOR_LATER


def apply_lot_pushed(shard: ShardState, fact: LotPushed, offset: int) -> None:
    """Adds jobs that share options as one lot."""
    queue = shard.queues[fact.queue]
    count = len(fact.payloads)
    state = live(None, _FOR_LATER if fact.run_at_ms else _PUSHED, fact.first_id)
    lot = Lot(
        fact.first_id,
        queue,
        fact.options,
        fact.payloads,
        pushed_ms=fact.at_ms,
        run_at_ms=fact.run_at_ms,
    )
    lot.state = state
    lot.offset = offset
    lot.volatile = fact.volatile
    shard.use_ids(fact.first_id, count)
    add_lot(shard, lot)
    payload_bytes = lot.payloads.bytes_of(0, count)
    shard.load.live_jobs += count
    shard.load.payload_bytes += payload_bytes
    queue.payload_bytes += payload_bytes
    queue.pushed_total += count
    if state is _SCHEDULED:
        queue.counts[_SCHEDULED] += count
        shard.schedule(fact.run_at_ms, lot.first_id)
    else:
        put_in_lane(shard, lot, count)
        shard.wake(queue)
    if fact.options.rules is not NO_RULES:
        expect_expiry(shard, lot)
        if fact.options.rules.batch_id:
            batches.join(shard, fact.options.rules.batch_id, count)
        if fact.options.rules.webhook:
            shard.load.tells_webhooks = True
    _note_age(shard, fact)
    if fact.digests:
        _remember_keys(shard, fact, fact.payloads.job_keys)
    if fact.request_hash:
        _remember_request(shard, fact, count)
    if fact.calls:
        _remember_calls(shard, fact)
    mark_lot(shard, lot)


def apply_jobs_pushed(shard: ShardState, fact: JobsPushed, offset: int) -> None:
    """Adds jobs with their own options or times as single jobs."""
    state = live(None, _PUSHED, fact.first_id)
    queue = shard.queues[fact.queue]
    count = len(fact.payloads)
    shard.use_ids(fact.first_id, count)
    # One int object per id, shared by the job, the table and the list of changes.
    ids = list(range(fact.first_id, fact.first_id + count))
    options = fact.options * count if len(fact.options) == 1 else fact.options
    at_ms = fact.at_ms
    jobs = [
        Job(job_id, queue, job_options, payload, at_ms, state)
        for job_id, job_options, payload in zip(ids, options, fact.payloads, strict=True)
    ]
    add_jobs(shard, queue, jobs)
    if fact.volatile:
        for job in jobs:
            job.volatile = True
    else:
        shard.changes.jobs.to_write.add_many(ids, part_of(ids, in_order=True))
    if fact.ties:
        _tie(shard, queue, jobs, fact.ties)
    ready, run_at_ms = block_new(shard, jobs, fact) if fact.blocked else (jobs, fact.run_at_ms)
    if run_at_ms:
        ready = _delay(shard, ready, run_at_ms)
    put_at_tail(shard, queue, ready, offset)
    queue.pushed_total += count
    _heed_rules(shard, fact, jobs)
    _note_age(shard, fact)
    if fact.job_keys:
        _remember_keys(shard, fact, map(str.encode, fact.job_keys))
        for job, key in zip(jobs, fact.job_keys, strict=True):
            job.job_key = key
    if fact.request_hash:
        _remember_request(shard, fact, count)
    if fact.calls:
        _remember_calls(shard, fact)


def _tie(shard: ShardState, queue: Queue, jobs: list[Job], ties: list[Ties]) -> None:
    """Gives new jobs their ties: they join their groups, and take their unique keys."""
    for parents, alike in groupby([of_job.parents for of_job in ties]):
        if parents:
            shard.load.wanted.add(parents, len([*alike]))
    for job, of_job in zip(jobs, ties, strict=True):
        job.ties = of_job
        if of_job.unique_key:
            take_unique_key(shard, job)
    groups.join(shard, queue, jobs)


def _heed_rules(shard: ShardState, fact: JobsPushed, jobs: list[Job]) -> None:
    if len(fact.options) > 1 or fact.options[0].rules is not NO_RULES:
        with_rules = [job for job in jobs if job.options.rules is not NO_RULES]
        for job in with_rules:
            expect_expiry(shard, job)
        batches.join_all(shard, with_rules)
        if any(job.options.rules.webhook for job in with_rules):
            shard.load.tells_webhooks = True


def _delay(shard: ShardState, jobs: list[Job], run_at_ms: list[int]) -> list[Job]:
    """Schedules the new jobs that have a time; returns the others."""
    ready: list[Job] = []
    state = live(None, _FOR_LATER, jobs[0].id)
    for job, due_ms in zip(jobs, run_at_ms, strict=True):
        if due_ms:
            job.state = state
            job.run_at_ms = due_ms
            shard.schedule(due_ms, job.id)
        else:
            ready.append(job)
    jobs[0].queue.counts[state] += len(jobs) - len(ready)
    return ready


def _note_age(shard: ShardState, fact: LotPushed | JobsPushed) -> None:
    if not fact.volatile:
        shard.age.note(fact.at_ms, fact.aged_ms)


def _remember_keys(shard: ShardState, fact: LotPushed | JobsPushed, keys: Iterable[bytes]) -> None:
    expires_ms = fact.aged_ms + limits.KEY_WINDOW_MS
    for index, key in enumerate(keys):
        if not key:
            continue
        record = KeyRecord(fact.first_id + index, 1, fact.digests[index], expires_ms)
        key_hash = hash_of(JOB_KEY, fact.queue, key)
        shard.load.keys += shard.keys.add(key_hash, record, volatile=fact.volatile)


def _remember_request(shard: ShardState, fact: LotPushed | JobsPushed, count: int) -> None:
    first_id, expires_ms = fact.first_id, fact.aged_ms + limits.REQUEST_WINDOW_MS
    known = shard.requests.find(fact.request_hash, fact.aged_ms)
    if known is not None:
        # A push of rows and plain payloads is two facts; this is the second one.
        first_id, count = min(known.first_id, first_id), known.count + count
    digest = fact.request_digest
    record = KeyRecord(first_id, count, digest, expires_ms, fact.stored_rows)
    added = shard.requests.add(fact.request_hash, record, volatile=fact.volatile)
    shard.load.requests += added


def _remember_calls(shard: ShardState, fact: LotPushed | JobsPushed) -> None:
    table = shard.volatile_producers if fact.volatile else shard.producers
    first_id = fact.first_id
    for call, count in zip(fact.calls, fact.call_jobs, strict=True):
        shard.load.calls += table.remember(call, first_id, count, fact.aged_ms, fact.stored_rows)
        first_id += count


def apply_jobs_retried(shard: ShardState, fact: JobsRetried, offset: int) -> None:
    """Makes ended jobs READY again, with a new budget of attempts; `delivery` continues."""
    retried: dict[str, list[Job]] = {}
    for record, state in zip(fact.jobs, fact.states, strict=True):
        queue = shard.queues[record.queue]
        job = Job(record.id, queue, record.options, record.payload, record.pushed_ms)
        job.state = live(state, Move.RETRIED, record.id)
        job.ready_ms = fact.at_ms
        job.delivery = record.delivery
        job.job_key = record.job_key
        job.ties = record.ties
        if job.ties.parents:
            shard.load.wanted.add(job.ties.parents)
        if job.ties.unique_key:
            shard.unique.take(job)
        job.lease_reason = LeaseReason.RETRY
        has_more = record.auto_retries or record.log is not None or record.phases
        if record.history or record.worker_checkpoint or has_more:
            details = job.details = Details()
            details.auto_retries = record.auto_retries
            details.history = record.history
            details.worker_checkpoint = record.worker_checkpoint
            details.log = None if record.log is None else record.log.copy()
            retain_phases(details, record)
            shard.count_reports(details.report_bytes())
        if job.options.rules.webhook:
            shard.load.tells_webhooks = True
        if job.options.rules.ttl_ms:
            job.writable_details().ttl_from_ms = fact.at_ms
            expect_expiry(shard, job)
        queue.counts[state] -= 1
        retried.setdefault(record.queue, []).append(job)
    for name, jobs in retried.items():
        queue = shard.queues[name]
        add_jobs(shard, queue, jobs)
        groups.join(shard, queue, jobs)
        put_at_tail(shard, queue, jobs, offset)
    shard.changes.jobs.to_write.add_many([record.id for record in fact.jobs], None)
    batches.note_retried(shard, fact)
    shard.effects.append(EndedChange(None, *_as_runs(fact.jobs), fact.at_ms))


def _as_runs(records: list[JobRecord]) -> tuple[list[int], list[int]]:
    """Returns jobs as runs of neighbours: first ids, and numbers of jobs."""
    starts: list[int] = []
    counts: list[int] = []
    end_id = -1
    for record in records:
        if record.id == end_id:
            counts[-1] += 1
        else:
            starts.append(record.id)
            counts.append(1)
        end_id = record.id + 1
    return starts, counts


APPLY: ApplyTable = {
    LotPushed: apply_lot_pushed,
    JobsPushed: apply_jobs_pushed,
    JobsRetried: apply_jobs_retried,
}
