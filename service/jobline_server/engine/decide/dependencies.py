"""Dependencies: tells BLOCKED jobs what became of their parents, and ends those that wait too long.

A parent may have a hundred thousand children, so they are told in slices, right after the decision
that ended it, and by the timers. A child that ends may have children of its own: those are in the
slices that follow, so nothing here calls itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobline_server.engine import effective
from jobline_server.engine.blocked_entries import (
    DependenciesFailed,
    DependentsTold,
    JobsUnblocked,
    ParentsDropped,
    ParentsEnded,
    ParentsMet,
)
from jobline_server.engine.decide.awaiting import forget_elsewhere, forget_unawaited
from jobline_server.engine.decide.messages import decide_send
from jobline_server.engine.dependencies import END_OF_STATE, ParentEnd, Told
from jobline_server.engine.dependency_messages import EndsOfJobs
from jobline_server.engine.job import Job
from jobline_server.engine.parents_left import policy_about
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.view import ShardView

# A child that ends costs one more for each so many parents that it waits for.
PARENTS_A_CHILD = 16
# A round of telling costs as much as so many children.
ROUND_COST = 5

_CANCEL, _IGNORE, _WAIT = DependencyPolicy.CANCEL, DependencyPolicy.IGNORE, DependencyPolicy.WAIT
_CONTINUE = DependencyPolicy.CONTINUE
_ENDING = frozenset({DependencyPolicy.FAIL, _CANCEL})
_COMPLETED, _DELETED = ParentEnd.COMPLETED, ParentEnd.DELETED


def release_dependents(shard: ShardView, now: Now, limit: int) -> bool:
    """Tells up to `limit` BLOCKED jobs what became of their parents; returns whether there are
    more. If it raises, those of the round are told again. In a chain, where each job that ends has
    one that waits for it, each is a round of its own, and counts for more. Other shards are told of
    jobs that nobody waits for any more.
    """
    most = limit
    while limit > 0 and shard.dependencies.pending:
        limit -= tell_round(shard, now, limit) + ROUND_COST
    more = bool(shard.dependencies.unawaited) and forget_unawaited(shard, now, most)
    return more or bool(shard.dependencies.pending)


def tell_round(shard: ShardView, now: Now, limit: int) -> int:
    """Tells up to `limit` of the jobs whose parents are over by now; returns how many it told. Jobs
    that wait for those that end by this are told in the next round.
    """
    dependencies = shard.dependencies

    def cost(child: int, parent: int, end: ParentEnd) -> int:
        job = None if end is _COMPLETED else shard.jobs.find(child)
        if job is None or not ends_by(job, parent, end):
            return 1
        return 1 + len(job.details.parents_left) // PARENTS_A_CHILD

    try:
        told = dependencies.next_told(limit, cost)
        verdicts = Verdicts(shard)
        for of_parent in told:
            for child in of_parent.children:
                verdicts.tell(child, of_parent.parent, of_parent.end)
        verdicts.emit(now)
        _finish(shard, now, [of_parent for of_parent in told if of_parent.is_last])
    except BaseException:
        dependencies.tell_again()
        raise
    return sum([len(of_parent.children) for of_parent in told])


def policy_of(job: Job, parent: int) -> DependencyPolicy:
    """Returns what a BLOCKED job does if this parent, for which it waits, does not complete."""
    own = policy_about(job.details.parents_left, parent, job.ties)
    return own or effective.on_dependency_failure(job.options, job.queue.settings)


def ends_by(job: Job, parent: int, end: ParentEnd) -> bool:
    """Returns whether a job ends because a parent did, which has not completed."""
    if parent not in job.details.parents_left:
        return False
    policy = policy_of(job, parent)
    return policy in _ENDING or (policy is _WAIT and end is _DELETED)


class Verdicts:
    """What becomes of BLOCKED jobs whose parents have ended."""

    def __init__(self, shard: ShardView) -> None:
        self._shard = shard
        self._met: list[tuple[int, int]] = []
        self._continued: list[int] = []
        self._failed: dict[tuple[int, ParentEnd, bool], list[int]] = {}
        # Those that failed or continue: another end changes nothing about it.
        self._decided: set[int] = set()

    def tell(self, child: int, parent: int, end: ParentEnd) -> None:
        """Tells a job what became of one of its parents."""
        job = self._shard.jobs.find(child)
        if job is None or child in self._decided or parent not in job.details.parents_left:
            return
        policy = _IGNORE if end is _COMPLETED else policy_of(job, parent)
        if policy is _IGNORE:
            self._met.append((child, parent))
        elif policy is _CONTINUE:
            self._continue(job)
        elif policy is not _WAIT or end is _DELETED:
            self._fail(job, parent, end, cancelled=policy is _CANCEL)

    def time_out(self, job: Job) -> None:
        """Ends the waiting of a job, as if a parent had failed."""
        policy = effective.on_dependency_failure(job.options, job.queue.settings)
        if policy in (_IGNORE, _CONTINUE):
            self._continue(job)
        else:
            self._fail(job, 0, ParentEnd.TIMED_OUT, cancelled=policy is _CANCEL)

    def _fail(self, job: Job, parent: int, end: ParentEnd, *, cancelled: bool) -> None:
        self._decided.add(job.id)
        self._failed.setdefault((parent, end, cancelled), []).append(job.id)

    def _continue(self, job: Job) -> None:
        self._decided.add(job.id)
        self._continued.append(job.id)

    def emit(self, now: Now) -> None:
        """Emits the facts."""
        shard, at_ms = self._shard, now.wall_ms
        children, parents = [child for child, _ in self._met], [met for _, met in self._met]
        if children:
            shard.emit(ParentsMet(at_ms, children, parents))
        if self._continued:
            shard.emit(ParentsDropped(at_ms, self._continued))
        # In the order in which the last parent of each was met.
        last = dict.fromkeys([*reversed(self._continued), *reversed(children)])
        for queue, ids in self._free(reversed(last)).items():
            shard.emit(JobsUnblocked(at_ms, queue, ids))
        for (parent, end, cancelled), ids in self._failed.items():
            shard.emit(DependenciesFailed(at_ms, parent, end, cancelled, ids))

    def _free(self, children: Iterable[int]) -> Mapping[str, list[int]]:
        """Returns the jobs that wait for nothing any more, by queue: for no other job, and not for
        their unique keys.
        """
        free: dict[str, list[int]] = {}
        for child in children:
            job = self._shard.jobs.find(child)
            if job is not None and not (job.details.parents_left or job.ties.claim.parked):
                free.setdefault(job.queue.name, []).append(child)
        return free


def _finish(shard: ShardView, now: Now, told: list[Told]) -> None:
    """Forgets the ends that all children here were told of; the other shards are told now."""
    if not told:
        return
    shard.emit(DependentsTold(now.wall_ms, [of_parent.parent for of_parent in told]))
    elsewhere: dict[int, list[Told]] = {}
    for of_parent in told:
        for to_shard in of_parent.shards:
            elsewhere.setdefault(to_shard, []).append(of_parent)
    for to_shard, parents in elsewhere.items():
        ids, ends = [one.parent for one in parents], [one.end for one in parents]
        decide_send(shard, now, to_shard, [EndsOfJobs(tuple(ids), tuple(ends))])
    find = shard.dependencies.awaited.find
    forget_elsewhere(shard, now, [one.parent for one in told if find(one.parent) is None])


def end_block_timeouts(shard: ShardView, now: Now, limit: int) -> bool:
    """Ends the waiting of a slice of the jobs that were BLOCKED for too long; returns whether more
    are due.
    """
    timeouts = shard.dependencies.timeouts
    verdicts = Verdicts(shard)
    taken: list[tuple[int, int]] = []
    try:
        for _ in range(limit):
            due = timeouts.pop_due(now.wall_ms)
            if due is None:
                break
            taken.append(due)
            job = shard.jobs.find(due[1])
            if job is not None and job.details.blocked_until_ms == due[0]:
                verdicts.time_out(job)
        verdicts.emit(now)
    except BaseException:
        for until_ms, job_id in taken:
            timeouts.add(until_ms, job_id)
        raise
    first_ms = timeouts.first_ms()
    return first_ms is not None and first_ms <= now.wall_ms


def decide_parents_ended(shard: ShardView, now: Now, states: Mapping[int, JobState | None]) -> None:
    """Takes what became of jobs that were looked up because others wait for them; None means that a
    job is not kept.
    """
    ids: list[int] = []
    ends: list[ParentEnd] = []
    for job_id, state in states.items():
        end = _DELETED if state is None else END_OF_STATE.get(state)
        if end is not None and shard.dependencies.awaited.find(job_id) is not None:
            ids.append(job_id)
            ends.append(end)
    if ids:
        shard.emit(ParentsEnded(now.wall_ms, ids, ends))
    shard.dependencies.looked_up(states)
