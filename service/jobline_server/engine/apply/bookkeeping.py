"""Steps that several facts share: adds and removes jobs and lots, splits a job off its lot, ends
leases.

Each function keeps the counts of queue, load, holder and lot consistent, and notes the changes that
a checkpoint must write.
"""

from __future__ import annotations

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.ties import drop_ties
from jobline_server.engine.changes import Bundle
from jobline_server.engine.expiring import expect_expiry, forget_expiries
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.tables import are_neighbours, part_of
from jobline_server.engine.timeouts import time_job
from jobline_server.engine.values import JobState

# Enum attribute access is slow before Python 3.12.
_ACTIVE, _READY = JobState.ACTIVE, JobState.READY


def run_key(lease: RunLease) -> int:
    """Returns the key of a run in `Holder.leases`: negative, so that it differs from the key of the
    job with the same id.
    """
    return -(lease.lot.first_id + lease.start)


def mark_job(shard: ShardState, job: Job) -> None:
    """Has the next checkpoint write this job."""
    if not job.volatile:
        shard.changes.jobs.to_write.add(job.id)


def mark_lot(shard: ShardState, lot: Lot) -> None:
    """Has the next checkpoint write this lot; removes a lot without jobs."""
    if lot.remaining:
        if not lot.volatile:
            shard.changes.lots.to_write.add(lot.first_id)
        return
    remove_lot(shard, lot)


def add_lot(shard: ShardState, lot: Lot) -> None:
    """Adds a lot to the live ones; the caller counts its jobs."""
    shard.lots.add(lot)
    lot.queue.blocks.add_one(lot.first_id)


def remove_lot(shard: ShardState, lot: Lot) -> None:
    """Removes a lot without jobs, and has the next checkpoint delete it."""
    shard.lots.remove(lot)
    lot.queue.blocks.remove_one(lot.first_id)
    shard.changes.lots.to_write.discard(lot.first_id)
    if lot.stored:
        shard.changes.lots.to_delete.append(lot.first_id)
    if lot.apart is not None:
        forget_payloads(shard, lot)
    if shard.expiring and lot.options.rules is not NO_RULES:
        forget_expiries(shard, 1)


def forget_payloads(shard: ShardState, lot: Lot) -> None:
    """Has the next checkpoint delete the item of a lot's payloads."""
    lot.apart = None
    shard.changes.lot_payloads.to_write.discard(lot.first_id)
    shard.changes.lot_payloads.to_delete.append(lot.first_id)


def add_job(shard: ShardState, job: Job) -> None:
    """Adds a job to the live ones; the caller sets its state and counts it there."""
    add_jobs(shard, job.queue, [job])


def add_jobs(shard: ShardState, queue: Queue, jobs: list[Job]) -> None:
    """Adds jobs of one queue, mostly neighbours by id, to the live ones; the caller sets their
    state and counts them there.
    """
    ids = [job.id for job in jobs]
    load, neighbours = shard.load, are_neighbours(ids)
    shard.jobs.add_many(ids, jobs, part_of(ids, in_order=neighbours))
    queue.blocks.add(ids, neighbours=neighbours)
    payload_bytes = sum([len(job.payload) for job in jobs])
    load.live_jobs += len(jobs)
    load.payload_bytes += payload_bytes
    queue.payload_bytes += payload_bytes


def drop_job(shard: ShardState, job: Job) -> None:
    """Removes a job from the live ones; the caller has taken it out of the count of its state."""
    drop_jobs(shard, job.queue, [job])


def drop_jobs(shard: ShardState, queue: Queue, jobs: list[Job]) -> None:
    """Removes jobs of one queue from the live ones; the caller has taken them out of the count of
    their state.
    """
    ids = [job.id for job in jobs]
    load, neighbours = shard.load, are_neighbours(ids)
    part = part_of(ids, in_order=neighbours)
    shard.jobs.remove_many(ids, part)
    queue.blocks.remove(ids, neighbours=neighbours)
    payload_bytes = sum([len(job.payload) for job in jobs])
    load.live_jobs -= len(jobs)
    load.payload_bytes -= payload_bytes
    queue.payload_bytes -= payload_bytes
    if shard.report_bytes:
        shard.count_reports(-sum([job.details.report_bytes() for job in jobs]))
    shard.changes.jobs.to_write.remove_many(ids, part)
    for job in [job for job in jobs if job.stored]:
        _forget_stored(shard, job)
    if shard.expiring:
        forget_expiries(shard, sum([job.options.rules is not NO_RULES for job in jobs]))
    if queue.groups:
        groups.leave(shard, queue, jobs)
    if shard.unique.held or load.wanted:
        drop_ties(shard, jobs)


def _forget_stored(shard: ShardState, job: Job) -> None:
    if isinstance(job.stored, Bundle):
        shard.remove_from_bundle(job.stored)
    else:
        shard.changes.jobs.to_delete.append(job.id)


def drop_members(shard: ShardState, lot: Lot, count: int, payload_bytes: int) -> None:
    """Removes `count` members of a lot from the live jobs; the caller has taken them out of the
    count of their state.
    """
    lot.remaining -= count
    shard.load.live_jobs -= count
    shard.load.payload_bytes -= payload_bytes
    lot.queue.payload_bytes -= payload_bytes
    mark_lot(shard, lot)


def count_active(shard: ShardState, queue: Queue, count: int) -> None:
    """Adds `count`, which may be negative, to the number of ACTIVE jobs. A queue whose concurrency
    gets room is woken.
    """
    queue.counts[_ACTIVE] += count
    shard.load.active_jobs += count
    if count < 0 and queue.allowance is not None:
        shard.wake(queue)


def settle_member(lease: RunLease, index: int) -> None:
    """Ends the lease of one member of a run; the caller has checked that it is open."""
    lease.settle(index, 1)
    _count_settled(lease, 1, lease.lot.payloads.bytes_of(index, 1))


def settle_members(lease: RunLease, starts: list[int], counts: list[int]) -> tuple[int, int]:
    """Ends the leases of members of a run, as runs of ids; returns the number of jobs and their
    payload bytes.
    """
    count = lease.settle_runs(starts, counts)
    payload_bytes = lease.lot.bytes_of_runs(starts, counts)
    _count_settled(lease, count, payload_bytes)
    return count, payload_bytes


def _count_settled(lease: RunLease, count: int, payload_bytes: int) -> None:
    lot, holder = lease.lot, lease.holder
    if holder.in_flight.extra_slots:
        holder.free_slots(lease, count)
    holder.settle(count, payload_bytes)
    if not lease.remaining:
        lot.drop_lease(lease)
        del holder.leases[run_key(lease)]


def unlease(job: Job) -> None:
    """Ends the lease of a job."""
    holder = job.holder
    if holder is None:
        raise IllegalMove(f"job {job.id} is not leased")
    del holder.leases[job.id]
    if holder.in_flight.extra_slots:
        holder.free_slots(job, 1)
    holder.settle(1, len(job.payload))
    job.holder = None


def unlease_all(jobs: list[Job]) -> None:
    """Ends the leases of jobs; each keeps its `holder`, as its ending names the worker."""
    holder: Holder | None = None
    has_extra = False
    count = payload_bytes = 0
    for job in jobs:
        if job.holder is not holder:
            if holder is not None:
                holder.settle(count, payload_bytes)
            holder = job.holder
            has_extra |= bool(holder and holder.in_flight.extra_slots)
            count = payload_bytes = 0
        del holder.leases[job.id]  # type: ignore[union-attr]  # an ACTIVE job has a holder
        count += 1
        payload_bytes += len(job.payload)
    if holder is not None:
        holder.settle(count, payload_bytes)
    for job in jobs if has_extra else ():
        if job.holder is not None:  # pragma: no branch: an ACTIVE job has a holder
            job.holder.free_slots(job, 1)


def single(shard: ShardState, job_id: int, *, may_be_ready: bool = False) -> Job:
    """Returns the job with this id as a single job, split off its lot if it was in one; raises
    `IllegalMove` for a READY member, unless it `may_be_ready`.
    """
    job = shard.jobs.find(job_id)
    if job is not None:
        return job
    lot = shard.lots.find(job_id)
    if lot is None:
        raise IllegalMove(f"job {job_id} is not live")
    index = job_id - lot.first_id
    if lot.state is _READY and lot.is_waiting(index) and not may_be_ready:
        raise IllegalMove(f"job {job_id} cannot be taken off its lot")
    return _split(shard, lot, index)


def _member(lot: Lot, index: int) -> Job:
    """Returns a member of a lot as a job, with its own headers and key."""
    payloads = lot.payloads
    options = payloads.options_of(index, lot.options)
    job = Job(lot.first_id + index, lot.queue, options, payloads[index], lot.pushed_ms)
    job.job_key = payloads.job_key_of(index)
    return job


def _split(shard: ShardState, lot: Lot, index: int) -> Job:
    """Splits one member off its lot. The timer of a SCHEDULED one remains with the lot, and a READY
    one is in no lane: the caller puts the job there or schedules it.
    """
    job = _member(lot, index)
    job.volatile = lot.volatile
    job.order = lot.order
    job.ready_ms = lot.ready_ms
    times_out_ms = 0
    lease = lot.lease_at(index)
    if lease is not None and lease.is_open(index):
        job.state = _ACTIVE
        job.delivery = lease.delivery
        job.lease_ms = lease.lease_ms
        job.leased_ms = lease.leased_ms
        job.deadline_ms = lease.ends_ms(index)
        job.holder = lease.holder
        settle_member(lease, index)
        job.holder.add(job, job.id, 1, len(job.payload))
        times_out_ms = lease.times_out_ms
    elif lot.is_waiting(index):
        job.state = lot.state
        job.run_at_ms = lot.run_at_ms
        lot.remove(index)
        if lot.state is _READY:
            lot.queue.leave(lot, 1)
    else:
        raise IllegalMove(f"job {job.id} cannot be taken off its lot")
    drop_members(shard, lot, 1, lot.payloads.bytes_of(index, 1))
    add_job(shard, job)
    mark_job(shard, job)
    expect_expiry(shard, job)
    if times_out_ms:
        time_job(shard, job, times_out_ms)
    return job


def member_of(lease: RunLease, job_id: int, state: JobState) -> Job:
    """Returns a member of a run as a job that has ended."""
    lot = lease.lot
    job = _member(lot, job_id - lot.first_id)
    job.state = state
    job.delivery = lease.delivery
    job.leased_ms, job.ready_ms = lease.leased_ms, lot.ready_ms
    job.holder = lease.holder
    return job
