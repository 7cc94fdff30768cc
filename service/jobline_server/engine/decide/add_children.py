"""Adds children to an ACTIVE job: its worker ends its lease, and it waits for them.

The words are those of flows: the children of a job are the jobs that it waits for, which
`dependencies` calls its parents. They are the roots of a flow that is pushed below it, in parts and
with the loop free in between, so this has two steps. `decide_set_aside` comes before the first
part, as it may refuse, and what is decided is never taken back. `decide_add_children` comes after
the last one, when the ids of the children are known. Both are in one commit with the parts.

Between the two the job is BLOCKED and waits for nothing, so nothing unblocks it; it may be
cancelled or expire. Then its children are jobs like any others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobline_server.engine import effective, limits
from jobline_server.engine.blocked_entries import (
    ChildrenAdded,
    DependenciesFailed,
    JobSetAside,
    JobsUnblocked,
)
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.awaiting import await_elsewhere
from jobline_server.engine.decide.parents import sort_out
from jobline_server.engine.decide.settle import held
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import JobState, Now, SettleOutcome
from jobline_server.engine.view import ShardView


class FlowParent(NamedTuple):
    """The lease of a job that is to wait for a flow, and its policies about the roots of the flow,
    as in `Ties`.
    """

    id: int
    delivery: int
    on_failure: bytes = b""


def lease_lost(parent: FlowParent) -> Refused:
    """Returns the refusal of a lease that is not valid, or never was."""
    why = f"job {parent.id} is not leased under delivery {parent.delivery}"
    return Refused(RefusalKind.LEASE_LOST, why)


def decide_set_aside(shard: ShardView, now: Now, parent: FlowParent, children: int) -> None:
    """Ends the lease of a job that will get so many children: it is BLOCKED. Call
    `decide_add_children` before the next commit.

    Raises `Refused` with LEASE_LOST, WRONG_STATE or TOO_LARGE.
    """
    shard.clocks.advance(now)
    lease = held(shard, parent.id, parent.delivery)
    if isinstance(lease, SettleOutcome):
        raise lease_lost(parent)
    owner: Job | Lot = lease if isinstance(lease, Job) else lease.lot
    _check(lease, owner, parent.id, children)
    worker = "" if lease.holder is None else lease.holder.worker
    shard.emit(JobSetAside(now.wall_ms, owner.queue.name, parent.id, worker))


def _check(lease: Job | RunLease, owner: Job | Lot, job_id: int, children: int) -> None:
    """Refuses children of a job that cannot wait for them."""
    before = len(lease.ties.parents) if isinstance(lease, Job) else 0
    if isinstance(lease, Job) and lease.cancel_requested:
        raise Refused(RefusalKind.WRONG_STATE, f"job {job_id} was cancelled: settle it")
    if owner.volatile:
        # After a restart it is gone, and the facts of its waiting would name no job.
        why = f"job {job_id} is in memory alone (MEMORY), and cannot wait for others"
        raise Refused(RefusalKind.WRONG_STATE, why)
    if before + children > limits.PARENTS_MAX:
        why = (
            f"job {job_id} has {before} children and would get {children} more, "
            f"of at most {limits.PARENTS_MAX} in all"
        )
        raise Refused(RefusalKind.TOO_LARGE, why, field="jobs")


def decide_add_children(
    shard: ShardView,
    now: Now,
    parent: FlowParent,
    children: Sequence[int],
    over: Mapping[int, JobState],
) -> tuple[int, ...]:
    """Has a job that was set aside wait for its new children, of which some are `over` already;
    returns those that it waits for. It has ended meanwhile, or does now, or is READY again, if
    there are none.
    """
    job_id = parent.id
    job = shard.jobs.find(job_id)
    if job is None or job.state is not JobState.BLOCKED:
        return ()
    settings = job.queue.settings
    policy = effective.on_dependency_failure(job.options, settings)
    added = NO_TIES.with_parents(children, parent.on_failure)
    left, failed = sort_out(over, added, policy)
    timeout_ms = effective.block_timeout_ms(job.options, settings) if left else 0
    until_ms = now.wall_ms + timeout_ms if timeout_ms else 0
    shard.emit(
        ChildrenAdded(now.wall_ms, job_id, list(children), list(left), until_ms, parent.on_failure)
    )
    if failed is not None:
        shard.emit(DependenciesFailed(now.wall_ms, *failed, [job_id]))
    elif not left:
        shard.emit(JobsUnblocked(now.wall_ms, job.queue.name, [job_id]))
    await_elsewhere(shard, now, left)
    return left
