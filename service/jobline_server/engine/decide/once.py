"""Once: jobs with `delivery` ONCE, which may run at most once.

Their lease is on disk before they reach a consumer: the runtime keeps what was leased apart
(`take_once`) and has the lease begin (`begin_leases`) when its commit is done. A lease that ends
otherwise than by a settle makes them DEAD with the reason INTERRUPTED (`expiry`, and
`decide_abandon` for a worker that has said goodbye). Only a lease that no consumer can have seen is
released.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobline_server.engine import effective
from jobline_server.engine.commands import Leased, LeasedJob, LeasedRun, NotDone, ReleaseItem
from jobline_server.engine.decide.settle import decide_release, held
from jobline_server.engine.entries import JobDied, JobsCancelled
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.values import EndReason, Now, SettleOutcome
from jobline_server.engine.view import ShardView


def take_once(leased: Leased) -> tuple[Leased, Leased]:
    """Returns the jobs that may be handed out only once, and the others, each in order."""
    items = leased.items()
    once = [item for item in items if item.is_once]
    others = [item for item in items if not item.is_once]
    return Leased.of(once), Leased.of(others)


def hold_leases(shard: ShardView, leased: Leased) -> None:
    """Keeps leases from ending while they wait for their commit."""
    for lease in _leases_of(shard, leased):
        shard.clocks.hold(lease)


def begin_leases(shard: ShardView, now: Now, holder: Holder, leased: Leased) -> Leased:
    """Gives leases that were held their full time from now; returns those that still exist. A job
    may have been cancelled or deleted meanwhile.
    """
    shard.clocks.advance(now)
    for lease in _leases_of(shard, leased):
        shard.clocks.begin(lease)
    shard.clocks.arm(holder)
    return Leased.of([item for item in leased.items() if any(_leases_on(shard, item))])


def _leases_of(shard: ShardView, leased: Leased) -> Iterator[Job | RunLease]:
    for item in leased.items():
        yield from _leases_on(shard, item)


def _leases_on(shard: ShardView, item: LeasedJob | LeasedRun) -> Iterator[Job | RunLease]:
    """Yields the leases on a job, or on the jobs of a run: one, unless some have left the run."""
    first_id = item.id if isinstance(item, LeasedJob) else item.first_id
    before: Job | RunLease | None = None
    for job_id in range(first_id, first_id + item.count()):
        lease = held(shard, job_id, item.delivery)
        if lease is not before and not isinstance(lease, SettleOutcome):
            before = lease
            yield lease


def is_once(lease: Job | RunLease) -> bool:
    """Returns whether the jobs of a lease may be handed out only once."""
    owner: Job | Lot = lease if isinstance(lease, Job) else lease.lot
    return effective.is_once(owner.options, owner.queue.settings)


def not_once(shard: ShardView, items: Iterable[ReleaseItem]) -> Iterator[ReleaseItem]:
    """Yields the items of jobs that are leased and may be handed out again."""
    for item in items:
        lease = held(shard, item.id, item.delivery)
        if not isinstance(lease, SettleOutcome) and not is_once(lease):
            yield item


def decide_abandon(shard: ShardView, now: Now, items: list[ReleaseItem]) -> NotDone:
    """Takes back what a worker holds that is gone for good: jobs that may be handed out only once
    are DEAD, or CANCELLED if that was asked for, and the others are released. Returns no outcomes:
    nobody waits for them.
    """
    others: list[ReleaseItem] = []
    for item in items:
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            continue
        owner: Job | Lot = lease if isinstance(lease, Job) else lease.lot
        if isinstance(lease, Job) and lease.cancel_requested:
            shard.emit(JobsCancelled(now.wall_ms, [item.id], [1]), volatile=owner.volatile)
        elif is_once(lease):
            died = JobDied(now.wall_ms, item.id, EndReason.INTERRUPTED, None)
            shard.emit(died, volatile=owner.volatile)
        else:
            others.append(item)
    decide_release(shard, now, others)
    return []
