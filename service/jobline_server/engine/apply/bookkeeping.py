"""What several facts do to a job: take it off its lot, give its lease back, count it out.

Every function keeps the counts of queue, load, holder and lot in step, and notes what a checkpoint
has to write.
"""

from __future__ import annotations

from jobline_server.engine.changes import Bundle
from jobline_server.engine.gates import UNTIL_NOTICE
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lane import LaneKey
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.tables import are_neighbours, part_of
from jobline_server.engine.values import JobState

# Looking a member up on its enum is dear before Python 3.12.
_ACTIVE, _SCHEDULED = JobState.ACTIVE, JobState.SCHEDULED


def run_key(lease: RunLease) -> int:
    """Where a holder keeps a run: below zero, so that it never meets the job with the same id."""
    return -(lease.lot.first_id + lease.start)


def mark_job(shard: ShardState, job: Job) -> None:
    """The next checkpoint writes this job."""
    if not job.volatile:
        shard.changes.jobs.to_write.add(job.id)


def mark_lot(shard: ShardState, lot: Lot) -> None:
    """The next checkpoint writes this lot, or deletes it if nothing of it is left."""
    if lot.remaining:
        if not lot.volatile:
            shard.changes.lots.to_write.add(lot.first_id)
        return
    remove_lot(shard, lot)


def add_lot(shard: ShardState, lot: Lot) -> None:
    """A lot is live from now on; the caller counts its jobs in."""
    shard.lots.add(lot)
    lot.queue.blocks.add_one(lot.first_id)


def remove_lot(shard: ShardState, lot: Lot) -> None:
    """Nothing of a lot is left."""
    shard.lots.remove(lot)
    lot.queue.blocks.remove_one(lot.first_id)
    shard.changes.lots.to_write.discard(lot.first_id)
    if lot.stored:
        shard.changes.lots.to_delete.append(lot.first_id)


def add_job(shard: ShardState, job: Job) -> None:
    """A job is live from now on; the caller gives it a state and counts that."""
    add_jobs(shard, job.queue, [job])


def add_jobs(shard: ShardState, queue: Queue, jobs: list[Job]) -> None:
    """Jobs of one queue, mostly neighbours by id, are live from now on; the caller gives them a
    state and counts that.
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
    """A job is not live any more; the caller has counted it out of its state."""
    drop_jobs(shard, job.queue, [job])


def drop_jobs(shard: ShardState, queue: Queue, jobs: list[Job]) -> None:
    """Jobs of one queue are not live any more; the caller has counted them out of their state."""
    ids = [job.id for job in jobs]
    load, neighbours = shard.load, are_neighbours(ids)
    part = part_of(ids, in_order=neighbours)
    shard.jobs.remove_many(ids, part)
    queue.blocks.remove(ids, neighbours=neighbours)
    payload_bytes = sum([len(job.payload) for job in jobs])
    load.live_jobs -= len(jobs)
    load.payload_bytes -= payload_bytes
    queue.payload_bytes -= payload_bytes
    shard.changes.jobs.to_write.remove_many(ids, part)
    for job in [job for job in jobs if job.stored]:
        _forget_stored(shard, job)


def _forget_stored(shard: ShardState, job: Job) -> None:
    if isinstance(job.stored, Bundle):
        shard.leave_bundle(job.stored)
    else:
        shard.changes.jobs.to_delete.append(job.id)


def drop_members(shard: ShardState, lot: Lot, count: int, payload_bytes: int) -> None:
    """Members of a lot are not live in it any more; the caller has counted them out of their
    state.
    """
    lot.remaining -= count
    shard.load.live_jobs -= count
    shard.load.payload_bytes -= payload_bytes
    lot.queue.payload_bytes -= payload_bytes
    mark_lot(shard, lot)


def count_active(shard: ShardState, queue: Queue, count: int) -> None:
    """So many jobs more, or less, are in the hands of workers."""
    queue.counts[_ACTIVE] += count
    shard.load.active_jobs += count


def close_gate(shard: ShardState, queue: Queue, key: LaneKey, opens_ms: int = UNTIL_NOTICE) -> None:
    """Has a lane give nothing until a moment in engine time."""
    queue.close_gate(key, opens_ms)
    shard.gates.note(queue)


def open_gate(shard: ShardState, queue: Queue, key: LaneKey) -> None:
    """Has a lane give what it has again."""
    queue.open_gate(key)
    shard.wake(queue)


def settle_member(lease: RunLease, index: int) -> None:
    """One member of a run, which the caller has seen to be open, is not leased any more."""
    lease.settle(index, 1)
    _count_settled(lease, 1, lease.lot.payloads.bytes_of(index, 1))


def settle_members(lease: RunLease, starts: list[int], counts: list[int]) -> tuple[int, int]:
    """Members of a run, as runs of ids, are not leased any more; says how many jobs and payload
    bytes that are.
    """
    count = lease.settle_runs(starts, counts)
    payload_bytes = lease.lot.bytes_of_runs(starts, counts)
    _count_settled(lease, count, payload_bytes)
    return count, payload_bytes


def _count_settled(lease: RunLease, count: int, payload_bytes: int) -> None:
    lot, holder = lease.lot, lease.holder
    holder.settle(count, payload_bytes)
    if not lease.remaining:
        lot.drop_lease(lease)
        del holder.leases[run_key(lease)]


def unlease(job: Job) -> None:
    """A job is not leased any more."""
    holder = job.holder
    if holder is None:
        raise IllegalMove(f"job {job.id} is not leased")
    del holder.leases[job.id]
    holder.settle(1, len(job.payload))
    job.holder = None


def unlease_all(jobs: list[Job]) -> None:
    """Jobs give their leases back; each keeps its holder, for the caller to tell who had it."""
    holder: Holder | None = None
    count = payload_bytes = 0
    for job in jobs:
        if job.holder is not holder:
            if holder is not None:
                holder.settle(count, payload_bytes)
            holder = job.holder
            count = payload_bytes = 0
        del holder.leases[job.id]  # type: ignore[union-attr]  # an ACTIVE job has a holder
        count += 1
        payload_bytes += len(job.payload)
    if holder is not None:
        holder.settle(count, payload_bytes)


def single(shard: ShardState, job_id: int) -> Job:
    """The job with this id as an object of its own, taken off its lot if it was in one."""
    job = shard.jobs.find(job_id)
    if job is not None:
        return job
    lot = shard.lots.find(job_id)
    if lot is None:
        raise IllegalMove(f"job {job_id} is not live")
    return _split(shard, lot, job_id - lot.first_id)


def _member(lot: Lot, index: int) -> Job:
    """A job as its lot has it, with what it has of its own beside its payload."""
    payloads = lot.payloads
    options = payloads.options_of(index, lot.options)
    job = Job(lot.first_id + index, lot.queue, options, payloads[index], lot.pushed_ms)
    job.job_key = payloads.job_key_of(index)
    return job


def _split(shard: ShardState, lot: Lot, index: int) -> Job:
    """Takes one member, ACTIVE or SCHEDULED, off its lot. Of a SCHEDULED one only its lot comes up
    at its time: the caller makes it ready, or schedules it.
    """
    job = _member(lot, index)
    job.volatile = lot.volatile
    job.order = lot.order
    job.ready_ms = lot.ready_ms
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
    elif lot.is_waiting(index) and lot.run_at_ms:
        job.state = lot.state
        job.run_at_ms = lot.run_at_ms
        lot.remove(index)
    else:
        raise IllegalMove(f"job {job.id} cannot be taken off its lot")
    drop_members(shard, lot, 1, lot.payloads.bytes_of(index, 1))
    add_job(shard, job)
    mark_job(shard, job)
    return job


def member_of(lease: RunLease, job_id: int, state: JobState) -> Job:
    """A member of a run as a job that has ended."""
    lot = lease.lot
    job = _member(lot, job_id - lot.first_id)
    job.state = state
    job.delivery = lease.delivery
    job.leased_ms = lease.leased_ms
    job.holder = lease.holder
    return job
