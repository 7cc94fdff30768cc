"""Lease: hands jobs out from the heads of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import cast

from jobline_server.engine import effective, limits
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun
from jobline_server.engine.decide.allow import allowed_jobs, ask_again, keep_affordable
from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.decide.expired import expire_chosen, expire_waiting
from jobline_server.engine.decide.group_limits import choose_within_rates
from jobline_server.engine.decide.pass_limiters import choose_passing
from jobline_server.engine.decide.sticky import continued_jobs, mark_continued
from jobline_server.engine.entries import JobsLeased
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import DeliveryMode
from jobline_server.engine.values import JobState, LeaseReason, Now
from jobline_server.engine.view import ShardView

_ONCE = DeliveryMode.ONCE


def decide_lease(  # noqa: PLR0913  # what a consumer takes is four arguments of its own
    shard: ShardView,
    now: Now,
    queue: Queue,
    holder: Holder,
    *,
    max_jobs: int,
    max_bytes: int,
    names: frozenset[str] | None,
    lease_ms: int,
    payload_bytes_max: int | None = None,
    max_slots: int | None = None,
) -> Leased:
    """Leases a slice of the READY jobs that are on disk, up to `max_jobs` and `max_bytes`; call
    `LeaseClocks.arm` with the holder afterwards.

    A holder without jobs gets one of any size up to `payload_bytes_max`, and of any `slots`; of the
    places of its window, `max_slots` (None: as many as `max_jobs`) are free. With `lease_ms` 0 each
    job has its effective lease time.
    """
    if max_jobs <= 0 or not _may_lease(queue):
        return Leased()
    expire_waiting(shard, now, limits.EXPIRED_LEASE_JOBS)
    allowance = queue.allowance
    if allowance is not None:
        max_jobs = min(max_jobs, allowed_jobs(shard, now, queue, allowance))
        if not max_jobs:
            return Leased()
    shard.clocks.advance(now)
    chosen = Choice(
        max_jobs,
        max_bytes,
        is_idle=not holder.in_flight.jobs,
        payload_bytes_max=payload_bytes_max,
        slots_room=max_slots,
        version=holder.version,
        session_id=holder.session_id,
    )
    may_have_once = bool(queue.needing or queue.gates.own) or queue.settings.delivery_mode is _ONCE
    if queue.groups.have_rates or queue.settings.group.rate is not None:
        choose = partial(_choose, shard, now, queue, names, chosen)
        choose_within_rates(shard, now, queue, chosen, choose)
    else:
        _choose(shard, now, queue, names, chosen)
    leased = _lease(shard, now, queue, holder, chosen, lease_ms)
    if allowance is not None and chosen.items:
        ask_again(shard, now, queue, allowance)
    if may_have_once:
        leased.mark_once(lambda options: effective.is_once(options, queue.settings))
    return leased


def lets_out(shard: ShardView, now: Now, queue: Queue) -> bool:
    """Returns whether a queue may hand out anything now, whoever asks. If only time has to pass,
    it is dispatched again then.
    """
    if not _may_lease(queue):
        return False
    return queue.allowance is None or allowed_jobs(shard, now, queue, queue.allowance) > 0


def has_for(
    shard: ShardView,
    now: Now,
    queue: Queue,
    names: frozenset[str] | None,
    version: str,
    payload_bytes_max: int,
) -> bool:
    """Returns whether a queue that `lets_out` may have jobs for consumers of these names, version
    and payload size, whatever room they have; those that are reserved for a session do not count.
    """
    chosen = Choice(
        1, 0, is_idle=True, payload_bytes_max=payload_bytes_max, slots_room=1, version=version
    )
    _choose(shard, now, queue, names, chosen)
    return bool(chosen.items) or chosen.is_cut_short


def _choose(
    shard: ShardView, now: Now, queue: Queue, names: frozenset[str] | None, chosen: Choice
) -> None:
    choose_passing(shard, now, queue, names, chosen)
    expire_chosen(shard, now, chosen)
    if queue.allowance is not None:
        keep_affordable(shard, now, queue, queue.allowance, chosen)


def _lease(
    shard: ShardView, now: Now, queue: Queue, holder: Holder, chosen: Choice, lease_ms: int
) -> Leased:
    items, first = chosen.items, shard.first_delivery()
    continued = continued_jobs(shard, queue, holder, items) if shard.sticky.last else []
    for group in _by_volatility(items):
        shard.emit(_fact(now, queue, holder, group, lease_ms, first), volatile=group[0].volatile)
    leased = _leased(chosen, first, lease_ms)
    mark_continued(leased, continued)
    return leased


def _may_lease(queue: Queue) -> bool:
    """Returns whether a queue has READY jobs that its groups do not hold, and lets them out."""
    has_some = queue.counts[JobState.READY] > queue.groups.held
    return has_some and not queue.paused and not queue.deleting


def _fact(
    now: Now, queue: Queue, holder: Holder, items: list[Job | LotRun], lease_ms: int, first: int
) -> JobsLeased:
    # A job's delivery only grows, within an epoch and from one epoch to the next.
    deliveries = [job.delivery + 1 if job.delivery >= first else first for job in items]
    return JobsLeased(
        at_ms=now.wall_ms,
        queue=queue.name,
        worker=holder.worker,
        version=holder.version,
        session=holder.session_id,
        lease_ms=lease_ms,
        starts=[item.id for item in items],
        counts=[item.count if isinstance(item, LotRun) else 1 for item in items],
        deliveries=deliveries,
        holder=holder,
    )


def _leased(chosen: Choice, first: int, lease_ms: int) -> Leased:
    """Returns the reply to the worker for items that are leased now. Runs have the delivery
    `first`, as they were never leased before.
    """
    leased = Leased()
    items = chosen.items
    runs = [item for item in items if isinstance(item, LotRun)] if chosen.has_runs else []
    jobs = [item for item in items if isinstance(item, Job)] if runs else items
    leased.runs = [_leased_run(run, first, lease_ms) for run in runs]
    leased.jobs = leased_jobs(cast("list[Job]", jobs))
    if runs and not all(isinstance(item, LotRun) for item in items[: len(runs)]):
        next_run, next_job = iter(leased.runs), iter(leased.jobs)
        leased.in_order = [
            next(next_run) if isinstance(item, LotRun) else next(next_job) for item in items
        ]
    return leased


def _by_volatility(items: list[Job | LotRun]) -> list[list[Job | LotRun]]:
    """Returns items in groups of neighbours, durable or volatile; nearly always one group."""
    volatile = [item.volatile for item in items]
    if any(volatile) and not all(volatile):
        return [list(group) for _, group in groupby(items, attrgetter("volatile"))]
    return [items] if items else []


def _leased_run(run: LotRun, delivery: int, lease_ms: int) -> LeasedRun:
    lot, start, count = run.lot, run.start, run.count
    return LeasedRun(
        first_id=run.id,
        delivery=delivery,
        queue=lot.queue.name,
        options=lot.options,
        payloads=lot.payloads.part(start, count),
        lease_ms=lease_ms or effective.lease_ms(lot.options, lot.queue.settings),
        pushed_ms=lot.pushed_ms,
        ready_ms=lot.ready_ms or lot.pushed_ms,
    )


def leased_jobs(jobs: Sequence[Job]) -> list[LeasedJob]:
    """Returns the reply to a worker for jobs that it holds."""
    # By position, which takes half the time of keywords: id, delivery, queue, options, payload,
    # attempt, reason, lease_ms, checkpoint, pushed_ms, job_key, ready_ms, group, phases.
    return [
        LeasedJob(
            job.id,
            job.delivery,
            job.queue.name,
            job.options,
            job.payload,
            job.attempts + 1,
            job.lease_reason,
            job.lease_ms,
            job.details.worker_checkpoint,
            job.pushed_ms,
            job.job_key,
            job.ready_ms or job.pushed_ms,
            job.ties.group,
            job.details.phases,
        )
        for job in jobs
    ]


def leased_job(job: Job, reason: LeaseReason | None = None) -> LeasedJob:
    """Returns the reply for one job, with another reason if one is given."""
    leased: LeasedJob = leased_jobs([job])[0]
    leased.reason = reason or leased.reason
    return leased
