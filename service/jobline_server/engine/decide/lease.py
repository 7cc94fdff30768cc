"""Lease: jobs are handed out, from the heads of lanes."""

from __future__ import annotations

from jobline_server.engine import effective
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun
from jobline_server.engine.entries import JobsLeased
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lane import Lane
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import LeaseReason, Now


def decide_lease(
    shard: Shard,
    now: Now,
    queue: Queue,
    holder: Holder,
    *,
    max_jobs: int,
    max_bytes: int,
    names: frozenset[str] | None,
    lease_ms: int,
) -> Leased:
    """Hands out what is ready and durable, at most `max_jobs` and `max_bytes`; one job always fits
    if the holder has none. `lease_ms` 0 leaves each job its own. Arm the holder afterwards
    (`arm`).
    """
    leased = Leased()
    if queue.paused:
        return leased
    shard.mono_ms = now.mono_ms
    while max_jobs > 0:
        lane = queue.next_lane(names, shard.committed)
        if lane is None:
            break
        head = lane.items[0]
        fits = _fitting(head, max_jobs, max_bytes, first=not holder.tally.jobs)
        if not fits:
            break
        max_jobs -= fits
        if isinstance(head, Lot):
            max_bytes -= fits * head.payload_bytes_max
            _lease_run(shard, now, lane, head, fits, holder, lease_ms, leased)
        else:
            max_bytes -= len(head.payload)
            taken = _singles(lane, head, max_jobs, max_bytes, shard.committed, queue, names)
            max_jobs -= len(taken) - 1
            max_bytes -= sum(len(job.payload) for job in taken[1:])
            _lease_jobs(shard, now, queue, taken, holder, lease_ms, leased)
    return leased


def _fitting(head: Lot | Job, max_jobs: int, max_bytes: int, *, first: bool) -> int:
    """How many jobs of the head fit."""
    if isinstance(head, Job):
        return 1 if first or len(head.payload) <= max_bytes else 0
    count = head.next_stretch(max_jobs)
    if head.payload_bytes_max:
        count = min(count, max(max_bytes // head.payload_bytes_max, 1 if first else 0))
    return count


def _singles(
    lane: Lane,
    head: Job,
    max_jobs: int,
    max_bytes: int,
    committed: int,
    queue: Queue,
    names: frozenset[str] | None,
) -> list[Job]:
    """The head and the single jobs right behind it that may go with it: one fact for all of them.
    Where another lane of the same priority could be next, the head goes alone.
    """
    taken = [head]
    if not queue.is_only_lane(lane, names):
        return taken
    for item in lane.after_head():
        if len(taken) > max_jobs or isinstance(item, Lot):
            break
        if not item.is_ready():
            continue
        max_bytes -= len(item.payload)
        if max_bytes < 0 or item.offset > committed:
            break
        taken.append(item)
    return taken


def _lease_run(
    shard: Shard,
    now: Now,
    lane: Lane,
    lot: Lot,
    count: int,
    holder: Holder,
    lease_ms: int,
    leased: Leased,
) -> None:
    start = lot.cursor
    delivery = shard.newest_delivery(0)
    fact = JobsLeased(
        at_ms=now.wall_ms,
        queue=lot.queue.name,
        worker=holder.worker,
        session=holder.session,
        lease_ms=lease_ms,
        starts=[lot.first_id + start],
        counts=[count],
        deliveries=[delivery],
        holder=holder,
    )
    shard.emit(fact, volatile=lot.volatile)
    leased.runs.append(
        LeasedRun(
            first_id=lot.first_id + start,
            delivery=delivery,
            queue=lot.queue.name,
            options=lot.options,
            payloads=lot.payloads[start : start + count],
            lease_ms=lease_ms or effective.lease_ms(lot.options, lot.queue.settings),
            pushed_ms=lot.pushed_ms,
        )
    )


def _lease_jobs(
    shard: Shard,
    now: Now,
    queue: Queue,
    jobs: list[Job],
    holder: Holder,
    lease_ms: int,
    leased: Leased,
) -> None:
    for volatile in (False, True):
        chosen = [job for job in jobs if job.volatile is volatile]
        if not chosen:
            continue
        fact = JobsLeased(
            at_ms=now.wall_ms,
            queue=queue.name,
            worker=holder.worker,
            session=holder.session,
            lease_ms=lease_ms,
            starts=[job.id for job in chosen],
            counts=[1] * len(chosen),
            deliveries=[shard.newest_delivery(job.delivery) for job in chosen],
            holder=holder,
        )
        shard.emit(fact, volatile=volatile)
    leased.jobs.extend(leased_job(job) for job in jobs)


def leased_job(job: Job, reason: LeaseReason | None = None) -> LeasedJob:
    """What a worker is told of a job that it holds."""
    return LeasedJob(
        id=job.id,
        delivery=job.delivery,
        queue=job.queue.name,
        options=job.options,
        payload=job.payload,
        attempt=job.attempts + 1,
        reason=reason or job.lease_reason,
        lease_ms=job.lease_ms,
        checkpoint=job.details.checkpoint,
        pushed_ms=job.pushed_ms,
        job_key=job.job_key,
    )


def arm(shard: Shard, holder: Holder) -> None:
    """Has the wheel look at a holder that was given leases."""
    check_ms = holder.next_check()
    if check_ms is not None:
        shard.wheel.arm(holder, check_ms)
