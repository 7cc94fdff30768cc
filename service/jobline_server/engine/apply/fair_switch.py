"""Switches whether a queue is fair while jobs wait: those of its groups go from the lanes and lines
of groups to the lanes of tenants, or back. `decide` has checked that they are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.group_changes import taken_off_lane
from jobline_server.engine.fair import FairShare
from jobline_server.engine.group import Group
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.sticky import unreserve
from jobline_server.engine.values import JobOptions, JobState

# Enum attribute access is slow before Python 3.12.
_READY, _ACTIVE = JobState.READY, JobState.ACTIVE


def heed_fair(shard: ShardState, queue: Queue) -> None:
    """Puts the setting `fair` of a queue in force, which is fair or was, and what it sets for its
    tenants.
    """
    if queue.fair is None:
        _make_fair(shard, queue)
    elif queue.settings.fair:
        queue.fair.set_defaults(queue.settings.group)
    else:
        _make_plain(shard, queue, queue.fair)
    shard.wake(queue)


def _make_fair(shard: ShardState, queue: Queue) -> None:
    ready: list[Job] = []
    running: dict[str, list[Job]] = {}
    for group in queue.groups:
        leased, waiting = _leave_line(shard, queue, group)
        if leased:
            running[group.name] = leased
        ready += waiting
    fair = queue.be_fair(shard.clocks, shard.resting)
    rest = queue.counts[_ACTIVE] - sum(map(len, running.values()))
    for name, jobs in running.items():
        fair.hand_out(name, jobs)
    if rest:
        fair.hand_out("", (), members=rest)
    queue.put_all(ready, [1] * len(ready))


def _leave_line(shard: ShardState, queue: Queue, group: Group) -> tuple[list[Job], list[Job]]:
    """Takes the jobs that a group has admitted, and those that wait in it, out of it and out of
    lanes; returns the ACTIVE and the READY ones, in order.
    """
    admitted = [shard.jobs[job.id] for job in sorted(group.dismiss_all(), key=place_of)]
    waiting = cast("list[Job]", group.take_all())
    for options, jobs in _by_options(waiting):
        groups.count_held(queue, options, -jobs)
    first: list[Job] = []
    for job in reversed([job for job in admitted if job.state is _READY]):
        free = taken_off_lane(shard, queue, job.id)
        unreserve(free)
        # It was let in before the others, and its place says when.
        behind = first[-1] if first else waiting[0] if waiting else free
        free.order = min(free.order, behind.order - 1)
        first.append(free)
    # That it was admitted is stored with a job.
    shard.changes.jobs.to_write.add_many([job.id for job in admitted], None)
    return [job for job in admitted if job.state is _ACTIVE], [*reversed(first), *waiting]


def _by_options(jobs: Sequence[Job]) -> Iterator[tuple[JobOptions, int]]:
    """Yields the options of jobs, and of how many jobs they are."""
    if jobs:
        found = {id(job.options): job.options for job in jobs}
        for number, count in Counter([id(job.options) for job in jobs]).items():
            yield found[number], count


def _make_plain(shard: ShardState, queue: Queue, fair: FairShare) -> None:
    ready: dict[str, list[Job]] = {}
    for lane in [lane for lane in queue.lanes() if lane.tenant]:
        for job in lane:
            if isinstance(job, Job) and job.state is _READY:
                ready.setdefault(lane.tenant, []).append(job)
        queue.empty_lane(lane)
    queue.be_plain()
    for group in queue.groups:
        tenant = fair.tenants.find(group.name)
        if tenant is not None:
            for running in sorted(tenant.running.values(), key=place_of):
                group.admit(running)
            shard.changes.jobs.to_write.add_many(list(tenant.running), None)
    # The place of its first job says when a group is let in. The order of the tables does not: it
    # is another one once a checkpoint is loaded.
    waiting = [sorted(jobs, key=place_of) for jobs in ready.values()]
    for jobs in sorted(waiting, key=lambda jobs: place_of(jobs[0])):
        group = groups.group_of(queue, jobs[0])
        group.put_all(jobs)
        for options, count in _by_options(jobs):
            groups.count_held(queue, options, count)
        groups.admit_next(shard, queue, group)
