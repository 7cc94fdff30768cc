"""Applies the facts of groups, and changes of their READY jobs."""

from __future__ import annotations

from copy import copy

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.group_rates import change_own_rate
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.group import Group
from jobline_server.engine.group_entries import GroupChanged, GroupPaused, GroupResumed
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.sticky import unreserve
from jobline_server.engine.values import JobState

# Enum attribute access is slow before Python 3.12.
_READY = JobState.READY


def apply_group_changed(shard: ShardState, fact: GroupChanged, _offset: int) -> None:
    """Changes the settings of a group; creates it if it does not exist."""
    queue = shard.queues[fact.queue]
    group = groups.known_group(shard, queue, fact.group)
    shard.use_ids(fact.number, 1)
    before, group.settings = group.settings, fact.settings
    groups.note_record(shard, group, fact.number)
    if group.settings.rate != before.rate:
        change_own_rate(shard, queue, group, before)
    groups.admit_next(shard, queue, group)
    groups.forget_if_idle(shard, queue, group)


def apply_group_paused(shard: ShardState, fact: GroupPaused, _offset: int) -> None:
    """Pauses a group: its READY jobs leave their lanes and wait at its front."""
    queue = shard.queues[fact.queue]
    group = groups.known_group(shard, queue, fact.group)
    shard.use_ids(fact.number, 1)
    group.paused = True
    group.paused_by, group.pause_reason = fact.principal, fact.reason
    groups.note_record(shard, group, fact.number)
    hold_back(shard, queue, group)


def hold_back(
    shard: ShardState, queue: Queue, group: Group, *, but: frozenset[int] = frozenset()
) -> None:
    """Takes the READY jobs of a group out of their lanes, `but` those which are leased in the same
    step: they wait at its front.
    """
    ready = [job for job in group.admitted if job.state is _READY and job.id not in but]
    for job in reversed(ready):
        group.dismiss(job)
        groups.wait(queue, group, taken_off_lane(shard, queue, job.id), first=True)


def taken_off_lane(shard: ShardState, queue: Queue, job_id: int) -> Job:
    """Takes a READY job out of its lane, and returns it. A lane is not searched: it keeps the
    former object, which it skips, and a copy is the job from now on.
    """
    job = shard.jobs[job_id]
    waiting = copy(job)
    queue.leave(job, 1)
    job.become_stand_in()
    shard.jobs[job_id] = waiting
    shard.changes.jobs.to_write.add(job_id)
    return waiting


def apply_group_resumed(shard: ShardState, fact: GroupResumed, _offset: int) -> None:
    """Resumes a group."""
    queue = shard.queues[fact.queue]
    group = groups.known_group(shard, queue, fact.group)
    group.paused = False
    group.paused_by = group.pause_reason = ""
    groups.note_record(shard, group, 0)
    groups.admit_next(shard, queue, group)
    groups.forget_if_idle(shard, queue, group)


def replace_ready(shard: ShardState, job: Job, changed: Job) -> None:
    """Takes a READY job of a group out of its lane or its line, as a changed copy of it is put
    elsewhere. One that is postponed gives up its place: it gets a new one when it is due.
    """
    queue = job.queue
    group = groups.group_of(queue, job)
    was_admitted = group.has_admitted(job)
    if was_admitted:
        queue.leave(job, 1)
    else:
        group.leave()
        groups.count_held(queue, job.options, -1)
    if changed.options.rules.sticky:
        unreserve(changed)
    job.become_stand_in()
    if was_admitted and changed.state is _READY:
        group.replace(changed)
    elif was_admitted:
        group.dismiss(job)
        groups.admit_next(shard, queue, group)


APPLY: ApplyTable = {
    GroupChanged: apply_group_changed,
    GroupPaused: apply_group_paused,
    GroupResumed: apply_group_resumed,
}
