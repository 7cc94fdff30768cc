"""Views of live and ended jobs for operators, and the filters over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobline_server.engine.expiring import expires_ms
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import AttemptOutcome, JobError, JobOptions, JobState
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.views import JobFilter, JobView


def live_view(job: Job, clock: Clock) -> JobView:
    """Returns the view of a single job."""
    details = job.details
    view = JobView(
        id=job.id,
        queue=job.queue.name,
        state=job.state,
        options=job.options,
        payload=job.payload,
        pushed_ms=job.pushed_ms,
        job_key=job.job_key,
        run_at_ms=job.run_at_ms,
        ttl_ends_ms=expires_ms(job),
        attempts=job.attempts,
        stalls=job.stalls,
        releases=job.releases,
        delivery=job.delivery,
        progress=details.progress,
        progress_message=details.progress_message,
        worker_checkpoint=details.worker_checkpoint,
        history=details.history,
        auto_retries=details.auto_retries,
        error=last_error(job),
        cancel_requested=job.cancel_requested,
        log=details.log,
        ties=job.ties,
        phases=details.phases,
        depends_on_left=len(details.parents_left),
        blocked_until_ms=details.blocked_until_ms,
        payload_bytes=len(job.payload),
    )
    if job.holder is not None:
        view.worker = job.holder.worker
        view.lease_until_ms = clock.wall_at(job.holder.deadline_of(job))
        times_out_ms, delivery = details.times_out
        if delivery == job.delivery:
            view.times_out_ms = clock.wall_at(times_out_ms)
    return view


def last_error(job: Job) -> JobError | None:
    """Returns the error of the last attempt that failed."""
    for attempt in reversed(job.details.history):
        if attempt.outcome is AttemptOutcome.FAILED:
            return attempt.error
    return None


def in_lot(lot: Lot, index: int, clock: Clock) -> JobView | None:
    """Returns the view of a live member of a lot; None if it has ended or left the lot."""
    lease = lot.lease_at(index)
    active = lease is not None and lease.is_open(index)
    if not active and not lot.is_waiting(index):
        return None
    waiting, payloads = lot.state, lot.payloads
    view = JobView(
        id=lot.first_id + index,
        queue=lot.queue.name,
        state=JobState.ACTIVE if active else waiting,
        options=payloads.options_of(index, lot.options),
        payload=payloads[index],
        pushed_ms=lot.pushed_ms,
        job_key=payloads.job_key_of(index),
        run_at_ms=lot.run_at_ms,
        ttl_ends_ms=expires_ms(lot),
        payload_bytes=payloads.size_of(index),
    )
    if lease is not None and active:
        view.delivery = lease.delivery
        view.worker = lease.holder.worker
        ends_ms = lease.holder.ends_ms(lease, lease.ends_ms(index))
        view.lease_until_ms = clock.wall_at(ends_ms)
        if lease.times_out_ms:
            view.times_out_ms = clock.wall_at(lease.times_out_ms)
    return view


def ended_view(state: JobState, record: JobRecord, stale_from: JobState | None) -> JobView:
    """Returns the view of an ended job."""
    return JobView(
        id=record.id,
        queue=record.queue,
        state=state,
        options=record.options,
        payload=record.payload,
        pushed_ms=record.pushed_ms,
        job_key=record.job_key,
        ended_ms=record.ended_ms,
        attempts=record.attempts,
        stalls=record.stalls,
        releases=record.releases,
        delivery=record.delivery,
        worker=record.worker,
        progress=record.progress,
        progress_message=record.progress_message,
        worker_checkpoint=record.worker_checkpoint,
        result=record.result,
        error=record.error,
        reason=record.reason,
        history=record.history,
        stale_from=stale_from,
        log=record.log,
        retry_ms=record.retry_ms if state is JobState.DEAD else 0,
        auto_retries=record.auto_retries,
        ties=record.ties,
        phases=record.phases,
        payload_bytes=len(record.payload),
    )


def matches(view: JobView, wanted: JobFilter) -> bool:
    """Returns whether a job meets every condition that is set."""
    error = view.error or JobError()
    return (
        has_wanted_options(view.queue, view.options, view.pushed_ms, wanted)
        and (not wanted.group or view.ties.group == wanted.group)
        and (not wanted.states or view.state in wanted.states)
        and (not wanted.reasons or view.reason in wanted.reasons)
        and _between(view.ended_ms, wanted.ended_after_ms, wanted.ended_before_ms)
        and (not wanted.error_type or error.type == wanted.error_type)
        and (not wanted.error_contains or wanted.error_contains in error.message)
    )


def has_wanted_options(queue: str, options: JobOptions, pushed_ms: int, wanted: JobFilter) -> bool:
    """Whether those conditions hold that all members of a lot meet, or none; but for headers that
    its members have each with its own value.
    """
    return (
        has_wanted_headers(options, wanted)
        and (not wanted.queue or queue == wanted.queue)
        and (wanted.name is None or options.name == wanted.name)
        and (not wanted.tags or wanted.tags.issubset(options.rules.tags))
        and (not wanted.batches or options.rules.batch_id in wanted.batches)
        and was_pushed_between(pushed_ms, wanted)
    )


def was_pushed_between(pushed_ms: int, wanted: JobFilter) -> bool:
    """Whether a filter wants what was pushed at a moment."""
    return _between(pushed_ms, wanted.pushed_after_ms, wanted.pushed_before_ms)


def has_wanted_headers(options: JobOptions, wanted: JobFilter) -> bool:
    """Whether options have all headers that a filter wants."""
    if not wanted.headers:
        return True
    headers = dict(options.headers)
    return all(headers.get(name) == value for name, value in wanted.headers)


def may_have_wanted(item: Item, wanted: JobFilter) -> bool:
    """Whether a single job, or some members of a lot, may meet those conditions."""
    if wanted.group and (isinstance(item, Lot) or item.ties.group != wanted.group):
        return False
    if wanted.headers and isinstance(item, Lot) and item.payloads.columns is not None:
        own = item.payloads.columns.header_keys
        shared = tuple([header for header in wanted.headers if header[0] not in own])
        wanted = replace(wanted, headers=shared)
    return has_wanted_options(item.queue.name, item.options, item.pushed_ms, wanted)


def members_wanted(lot: Lot, indexes: range, wanted: JobFilter) -> Sequence[int]:
    """Those of some members of a lot, which may be wanted, whose headers a filter wants."""
    payloads = lot.payloads
    if not wanted.headers or payloads.columns is None:
        return indexes
    return [
        index
        for index in indexes
        if index >= payloads.skipped
        and has_wanted_headers(payloads.options_of(index, lot.options), wanted)
    ]


def _between(moment_ms: int, after_ms: int | None, before_ms: int | None) -> bool:
    return (after_ms is None or moment_ms >= after_ms) and (
        before_ms is None or moment_ms < before_ms
    )
