"""Applies the facts that lease jobs, and that return them without ending them."""

from __future__ import annotations

from typing import cast

from jobline_server.engine import effective
from jobline_server.engine.apply import groups
from jobline_server.engine.apply.allowances import take_tokens
from jobline_server.engine.apply.attempts import note_attempt
from jobline_server.engine.apply.bookkeeping import (
    count_active,
    mark_job,
    mark_lot,
    run_key,
    single,
    unlease,
)
from jobline_server.engine.apply.fronts import reach, ready_lane, turn_back
from jobline_server.engine.apply.limiters import count_ended, take_permits
from jobline_server.engine.apply.noted import note_jobs, note_runs
from jobline_server.engine.apply.ready import make_ready
from jobline_server.engine.apply.sticky import note_sticky
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.apply.worker_time import count_started
from jobline_server.engine.entries import (
    CancelRequested,
    JobFailed,
    JobsLeased,
    JobsReleased,
    JobsStalled,
)
from jobline_server.engine.expiring import expect_expiry
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lane import SMALL_BYTES, Lane
from jobline_server.engine.lot import RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove, Move, live
from jobline_server.engine.timeouts import start_run_timeout, start_timeouts
from jobline_server.engine.values import (
    AttemptOutcome,
    JobOptions,
    JobState,
    LeaseReason,
    ReleaseReason,
    RevokeReason,
)

# Enum attribute access is slow before Python 3.12.
_READY, _SCHEDULED = JobState.READY, JobState.SCHEDULED
_LEASED = Move.LEASED
_FAILED, _FAILED_RETRY_NOW = Move.FAILED, Move.FAILED_RETRY_NOW
_ATTEMPT_FAILED = AttemptOutcome.FAILED
_RETRY = LeaseReason.RETRY


def apply_jobs_leased(shard: ShardState, fact: JobsLeased, _offset: int) -> None:
    """Leases the heads of lanes to a holder."""
    holder = fact.holder
    if holder is None:
        holder = _recovered_holder(shard, fact)
    found, part = shard.jobs.find_many(fact.starts)
    if shard.queues[fact.queue].allowance is not None:
        take_tokens(shard, fact, found)
    if all(found):
        _lease_jobs(shard, fact, holder, cast("list[Job]", found), 0, part)
        return
    for index, job in enumerate(found):
        if job is None:
            _lease_run(shard, fact, holder, index)
        else:
            _lease_jobs(shard, fact, holder, [job], index, None)


def _recovered_holder(shard: ShardState, fact: JobsLeased) -> Holder:
    if fact.session:
        return shard.clocks.holder_of(fact.session, fact.worker, fact.version)
    return Holder(fact.worker, "", version=fact.version)


def _lease_run(shard: ShardState, fact: JobsLeased, holder: Holder, at: int) -> None:
    """Leases the run with this index of the fact."""
    first_id, count = fact.starts[at], fact.counts[at]
    lot = shard.lots.find(first_id)
    if lot is None:
        raise IllegalMove(f"lot of {first_id} is not live")
    queue = lot.queue
    live(lot.state, _LEASED, first_id)
    lane = ready_lane(queue, lot)
    index = first_id - lot.first_id
    turned: dict[Lane, int] = {}
    items = reach(lane, lot, turned)
    if not items or items[0] is not lot or lot.cursor != index:
        raise IllegalMove(f"job {first_id} is not at the head of its lane")
    lease = RunLease(
        lot,
        index,
        count,
        delivery=fact.deliveries[at],
        holder=holder,
        lease_ms=fact.lease_ms or effective.lease_ms(lot.options, queue.settings),
    )
    if lane.needs is not None:
        take_permits(shard, [lot], count)
    lease.leased_ms = fact.at_ms
    lease.deadline_ms = shard.clocks.mono_ms + lease.lease_ms
    lot.leases.append(lease)
    if queue.settings.timeout_ms or lot.options.rules is not NO_RULES:
        start_run_timeout(shard, lease)
    lot.cursor = index + count
    if lot.cursor >= len(lot.payloads):
        items.popleft()
    turn_back(turned)
    if queue.fair is not None:
        queue.fair.hand_out("", (), members=count)
    lane.ready -= count
    queue.count_lane(lane, -count)
    count_active(shard, queue, count)
    holder.add(lease, run_key(lease), count, lot.payloads.bytes_of(index, count))
    note_runs(shard, lot, [(first_id, count)], lease)
    mark_lot(shard, lot)


def _lease_jobs(
    shard: ShardState, fact: JobsLeased, holder: Holder, jobs: list[Job], at: int, part: int | None
) -> None:
    """Leases single jobs, from this index of the fact on, each from the head of its lane. `part` is
    the part of the table that holds all of them, if known.
    """
    queue, at_ms = jobs[0].queue, fact.at_ms
    leases = holder.leases
    active = live(_READY, _LEASED, jobs[0].id)
    before, turned = dict[Lane, int](), dict[Lane, int]()
    options: JobOptions | None = None
    has_rules = False
    sizes = [len(job.payload) for job in jobs]
    # Jobs with the same options may be in different lanes.
    has_large = are_apart = max(sizes) > SMALL_BYTES or queue.fair is not None
    for job, delivery in zip(jobs, fact.deliveries[at:], strict=False):
        if job.options is not options or are_apart:
            options = job.options
            are_apart = has_large or options.rules.sticky
            has_rules |= options.rules is not NO_RULES
            lane = ready_lane(queue, job)
            before.setdefault(lane, lane.ready)
            items = lane.items
            lease_ms = fact.lease_ms or effective.lease_ms(options, queue.settings)
            deadline_ms = shard.clocks.mono_ms + lease_ms
            holder.lease_ms_min = min(holder.lease_ms_min, lease_ms)
        if not items or items[0] is not job:
            items = reach(lane, job, turned)
        if job.state is not _READY or not items or items[0] is not job:
            live(job.state, _LEASED, job.id)
            raise IllegalMove(f"job {job.id} is not at the head of its lane")
        items.popleft()
        lane.ready -= 1
        job.state = active
        job.delivery = delivery
        job.lease_ms = lease_ms
        job.leased_ms = at_ms
        job.deadline_ms = deadline_ms
        job.holder = holder
        leases[job.id] = job
    turn_back(turned)
    count_started(shard, queue, jobs)
    queue.count_ready(before)
    holder.in_flight.jobs += len(jobs)
    holder.in_flight.payload_bytes += sum(sizes)
    if has_rules or queue.settings.timeout_ms or shard.sticky.last:
        _heed_rules(shard, queue, jobs, holder)
    note_jobs(shard, jobs)
    if not jobs[0].volatile:
        shard.changes.jobs.to_write.add_many(fact.starts[at : at + len(jobs)], part)


def _heed_rules(shard: ShardState, queue: Queue, jobs: list[Job], holder: Holder) -> None:
    """Does for leased jobs what few of them ask for."""
    start_timeouts(shard, jobs)
    take_permits(shard, jobs)
    holder.in_flight.extra_slots += sum([job.slots - 1 for job in jobs])
    note_sticky(shard, queue, jobs, holder)


def apply_job_failed(shard: ShardState, fact: JobFailed, offset: int) -> None:
    """Uses up an attempt of an active job and makes it wait for the next one."""
    job = single(shard, fact.id)
    move = _FAILED if fact.run_at_ms else _FAILED_RETRY_NOW
    state = live(job.state, move, job.id)
    note_jobs(shard, [job])
    note_attempt(shard, job, fact.at_ms, _ATTEMPT_FAILED, fact.error)
    if fact.timed_out:
        shard.revoke(job, job.id, RevokeReason.TIMEOUT)
    job.note_ready(fact.at_ms)
    _return_job(shard, job, state, fact.run_at_ms, offset)
    job.attempts += 1
    job.lease_reason = _RETRY
    job.queue.failed_total += 1


def apply_jobs_stalled(shard: ShardState, fact: JobsStalled, offset: int) -> None:
    """Takes jobs back from lost leases; each uses up a stall."""
    moves = Move.STALLED, Move.STALLED_WAIT
    for job in _return_jobs(shard, fact, offset, moves, AttemptOutcome.STALLED):
        job.stalls += 1
        job.lease_reason = LeaseReason.STALLED


def apply_jobs_released(shard: ShardState, fact: JobsReleased, offset: int) -> None:
    """Takes jobs back that workers released. Those that reached no worker use up no release."""
    moves = Move.RELEASED, Move.RELEASED_FOR_LATER
    for job in _return_jobs(shard, fact, offset, moves, AttemptOutcome.RELEASED):
        job.releases += fact.why is not ReleaseReason.UNDELIVERED
        job.lease_reason = LeaseReason.RELEASED


def _return_jobs(
    shard: ShardState,
    fact: JobsStalled | JobsReleased,
    offset: int,
    moves: tuple[Move, Move],
    outcome: AttemptOutcome,
) -> list[Job]:
    """Moves ACTIVE jobs to SCHEDULED, or to READY at their old place in their lanes; returns
    them. `moves` are the move to READY and the one to SCHEDULED.
    """
    ready: list[Job] = []
    jobs: list[Job] = []
    for index, job_id in enumerate(fact.ids):
        run_at_ms = fact.run_at_ms[index] if fact.run_at_ms else 0
        job = single(shard, job_id)
        state = live(job.state, moves[bool(run_at_ms)], job_id)
        note_jobs(shard, [job])
        note_attempt(shard, job, fact.at_ms, outcome, None)
        if outcome is AttemptOutcome.STALLED:
            shard.revoke(job, job_id, RevokeReason.LEASE_LOST)
        job.note_back(fact.at_ms)
        jobs.append(job)
        if run_at_ms:
            _return_job(shard, job, state, run_at_ms, offset)
            continue
        unlease(job)
        expect_expiry(shard, job)
        job.state = state
        job.offset = 0 if job.volatile else offset
        mark_job(shard, job)
        ready.append(job)
    if ready:
        queue = ready[0].queue
        groups.put_back(queue, ready)
        count_ended(shard, queue, ready)
        shard.wake(queue)
    return jobs


def _return_job(shard: ShardState, job: Job, state: JobState, run_at_ms: int, offset: int) -> None:
    """Moves an ACTIVE job to SCHEDULED, or to READY at the tail of its lane."""
    unlease(job)
    expect_expiry(shard, job)
    queue = job.queue
    job.state = state
    if state is _SCHEDULED:
        job.run_at_ms = run_at_ms
        queue.counts[_SCHEDULED] += 1
        shard.schedule(run_at_ms, job.id)
        mark_job(shard, job)
    else:
        make_ready(shard, job, offset)
    count_ended(shard, queue, [job])


def apply_cancel_requested(shard: ShardState, fact: CancelRequested, _offset: int) -> None:
    """Asks the workers of active jobs to stop."""
    for job_id in fact.ids:
        job = single(shard, job_id)
        note_jobs(shard, [job])
        job.cancel_requested = True
        shard.revoke(job, job.id, RevokeReason.CANCELLED)
        mark_job(shard, job)


APPLY: ApplyTable = {
    JobsLeased: apply_jobs_leased,
    JobFailed: apply_job_failed,
    JobsStalled: apply_jobs_stalled,
    JobsReleased: apply_jobs_released,
    CancelRequested: apply_cancel_requested,
}
