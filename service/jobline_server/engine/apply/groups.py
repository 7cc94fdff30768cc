"""Steps of facts that concern groups: which jobs are admitted to lanes, and which wait.

`join`, `make_ready`, `put_back`, `leave_waiting` and `leave` are called wherever jobs come, become
READY and go, in queues that have groups. Each admits what has room then, at the tail of its lane
and with the offset of the fact, so the next job of a group is handed out only once the end of the
job before it is on disk (G3, G11). No job of a group is volatile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from jobline_server.engine import effective
from jobline_server.engine.group import Group, Member
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, OnDeadHead
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.sticky import unreserve
from jobline_server.engine.values import JobOptions, JobState

# Enum attribute access is slow before Python 3.12.
_READY, _DEAD = JobState.READY, JobState.DEAD


def join(shard: ShardState, queue: Queue, jobs: Sequence[Job]) -> None:
    """Counts new live jobs in their groups; those of no group are left out."""
    for job in jobs:
        if job.ties.group:
            group = known_group(shard, queue, job.ties.group)
            group.live += 1
            job.ties = group.share(job.ties)


def known_group(shard: ShardState, queue: Queue, name: str) -> Group:
    """Returns a group, created if it does not exist."""
    group = queue.groups.find(name)
    if group is None:
        group = Group(queue.name, name)
        queue.groups.add(group)
        shard.load.groups += 1
    return group


def group_of(queue: Queue, job: Job) -> Group:
    """Returns the group of a job that has one."""
    group = queue.groups.find(job.ties.group)
    if group is None:
        raise IllegalMove(f"job {job.id} is of no known group")
    return group


def make_ready(shard: ShardState, job: Job, offset: int) -> None:
    """Puts a job, which the caller has made READY, into its lane or behind the others of its group.
    One that is admitted returns to its old place.
    """
    queue = job.queue
    group = group_of(queue, job)
    job.offset = offset
    shard.changes.jobs.to_write.add(job.id)
    if group.has_admitted(job):
        if job.options.rules.sticky and not group.is_stopped():
            shard.sticky.reserve(job, offset)
        _return(queue, group, [job])
    elif job.id in group.dead_heads:
        wait(queue, group, job, first=True)
        forget_dead_head(shard, queue, job.id)
    elif not group.ready and group.has_room(queue.settings.group):
        _admit(shard, queue, group, job)
    else:
        job.order = shard.tail_order()
        wait(queue, group, job)
        admit_next(shard, queue, group)
    shard.wake(queue)


def put_each(shard: ShardState, queue: Queue, jobs: Sequence[Job], offset: int) -> None:
    """Makes READY jobs ready one by one, some of which are of groups, in this order."""
    for job in jobs:
        if job.ties.group:
            make_ready(shard, job, offset)
        else:
            job.order = shard.tail_order()
            job.offset = offset
            queue.put(job, 1)
    shard.wake(queue)


def put_back(queue: Queue, jobs: Sequence[Job]) -> None:
    """Returns jobs of a queue that were leased, and are READY, to their old places."""
    if not queue.groups or queue.fair is not None:
        queue.put_back(jobs)
        return
    plain = [job for job in jobs if not job.ties.group]
    if plain:
        queue.put_back(plain)
    for job in jobs:
        if job.ties.group:
            _return(queue, group_of(queue, job), [job])


def _return(queue: Queue, group: Group, jobs: Sequence[Job]) -> None:
    """Returns admitted jobs to their lanes, or to the front of a group that is stopped."""
    if not group.is_stopped():
        queue.put_back(jobs)
        return
    for job in jobs:
        group.dismiss(job)
        wait(queue, group, job, first=True)


def wait(queue: Queue, group: Group, job: Member, *, first: bool = False) -> None:
    """Has a READY job wait for its turn, behind all others of its group or before them."""
    if job.options.rules.sticky:
        unreserve(cast("Job", job))
    if first:
        group.put_first(job)
    else:
        group.put_last(job)
    count_held(queue, job.options, 1)


def count_held(queue: Queue, options: JobOptions, jobs: int) -> None:
    """Counts READY jobs with these options that are in no lane."""
    queue.counts[_READY] += jobs
    queue.ready.add(options, jobs)
    queue.groups.held += jobs


def admit_next(shard: ShardState, queue: Queue, group: Group) -> None:
    """Admits the next jobs of a group while it has room; a tenant of a fair queue is served again
    if it may.
    """
    if queue.fair is not None:
        queue.fair.reopen(group.name)
        shard.wake(queue)
        return
    defaults = queue.settings.group
    while group.has_room(defaults) and (job := group.take_first()) is not None:
        count_held(queue, job.options, -1)
        job.offset = max(job.offset, shard.offset)
        shard.changes.jobs.to_write.add(job.id)
        _admit(shard, queue, group, job)
        shard.wake(queue)


def _admit(shard: ShardState, queue: Queue, group: Group, job: Member) -> None:
    """Puts a job at the tail of its lane."""
    group.admit(job)
    job.order = shard.tail_order()
    if job.options.rules.sticky:
        shard.sticky.reserve(cast("Job", job), job.offset)
    queue.put(job, 1)


def leave_waiting(queue: Queue, jobs: Sequence[Job]) -> list[Job]:
    """Counts READY jobs that end or are delayed out of their groups, if they are not admitted;
    returns the others, which are in lanes. The caller changes their state.
    """
    if queue.fair is not None:
        return list(jobs)
    in_lanes: list[Job] = []
    for job in jobs:
        group = queue.groups.find(job.ties.group) if job.ties.group else None
        if group is None or group.has_admitted(job):
            in_lanes.append(job)
        else:
            group.leave()
            count_held(queue, job.options, -1)
    return in_lanes


def is_admitted(job: Job) -> bool:
    """Returns whether the group of a job has admitted it."""
    group = job.queue.groups.find(job.ties.group) if job.ties.group else None
    return group is not None and group.has_admitted(job)


def waits_in_line(job: Job) -> bool:
    """Returns whether a READY job is in no lane, as its group has not admitted it."""
    return bool(job.ties.group) and job.queue.fair is None and not is_admitted(job)


def leave(shard: ShardState, queue: Queue, jobs: Sequence[Job]) -> None:
    """Counts jobs that are no longer live out of their groups, and admits the next ones."""
    for job in jobs:
        if not job.ties.group:
            continue
        group = group_of(queue, job)
        group.live -= 1
        group.sweep()
        if group.dismiss(job):
            admit_next(shard, queue, group)
        forget_if_idle(shard, queue, group)


def step_aside(shard: ShardState, job: Job) -> None:
    """Takes a job that is BLOCKED from now on out of the admitted ones of its group, if it has one,
    and admits the next; it comes back behind those that wait then.
    """
    if job.ties.group:
        group = group_of(job.queue, job)
        if group.dismiss(job):
            admit_next(shard, job.queue, group)


def forget_if_idle(shard: ShardState, queue: Queue, group: Group) -> None:
    """Removes a group that has neither live jobs nor a record."""
    if not group.live and not group.has_record():
        queue.groups.remove(group)
        shard.load.groups -= 1
        if group.bucket is not None:
            shard.group_rates.keep(queue, group, shard.clocks.mono_ms)


def hold_by_dead_head(shard: ShardState, job: Job) -> None:
    """Has a job that is about to become DEAD hold its group, if it is kept and its options or those
    of its group say so.
    """
    queue = job.queue
    group = group_of(queue, job)
    does_hold = effective.on_dead_head(job.options, group.settings, queue.settings)
    if does_hold is OnDeadHead.HOLD and effective.is_kept(job.options, queue.settings, _DEAD):
        group.dead_heads = (*group.dead_heads, job.id)
        queue.groups.dead_heads[job.id] = group
        note_record(shard, group, job.id)


def forget_dead_heads(
    shard: ShardState, queue: Queue, starts: Sequence[int], counts: Sequence[int]
) -> None:
    """Frees the groups that deleted jobs held, given as runs of ids."""
    held = queue.groups.dead_heads
    for start, count in zip(starts, counts, strict=True) if held else ():
        for job_id in range(start, start + count):
            if job_id in held:
                forget_dead_head(shard, queue, job_id)


def forget_dead_head(shard: ShardState, queue: Queue, job_id: int) -> None:
    """Frees the group that a dead job held: it was retried or deleted."""
    group = queue.groups.dead_heads.pop(job_id)
    group.dead_heads = tuple(one for one in group.dead_heads if one != job_id)
    note_record(shard, group, job_id)
    admit_next(shard, queue, group)
    forget_if_idle(shard, queue, group)


def note_record(shard: ShardState, group: Group, number: int) -> None:
    """Has the next checkpoint write the record of a group, or delete it if it has none any more.
    `number` is the key of a new record.
    """
    changes = shard.changes.groups
    if group.has_record():
        if not group.number:
            group.number = number
            shard.group_records[number] = group
        changes.to_write.add(group.number)
    elif group.number:
        del shard.group_records[group.number]
        changes.to_write.discard(group.number)
        if group.stored:
            changes.to_delete.append(group.number)
        group.number, group.stored = 0, False


def forget_all(shard: ShardState, queue: Queue) -> None:
    """Removes all groups of a queue that is deleted."""
    shard.load.groups -= len(queue.groups)
    shard.group_rates.forget(queue)
    for group in queue.groups:
        if group.number:
            group.settings, group.paused, group.dead_heads = NO_GROUP_SETTINGS, False, ()
            group.limited, group.is_used_up = None, False
            shard.closed_groups.forget(group)
            note_record(shard, group, 0)
    queue.groups = type(queue.groups)()
