"""Switches whether a queue is fair while jobs wait: those of its groups go from the lanes and lines
of groups to the lanes of tenants, or back. `decide` has checked that they are few.
"""

from __future__ import annotations

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.group_changes import taken_off_lane
from jobline_server.engine.fair import FairShare
from jobline_server.engine.group import Group
from jobline_server.engine.job import Job
from jobline_server.engine.lane import place_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.sticky import unreserve
from jobline_server.engine.values import JobState

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
        of_group = _leave_line(shard, queue, group)
        ready += [job for job in of_group if job.state is _READY]
        running[group.name] = [job for job in of_group if job.state is _ACTIVE]
    fair = queue.be_fair(shard.clocks, shard.resting)
    rest = queue.counts[_ACTIVE] - sum(map(len, running.values()))
    for name, jobs in running.items():
        if jobs:
            fair.hand_out(name, jobs)
    if rest:
        fair.hand_out("", (), members=rest)
    for job in ready:
        unreserve(job)
        job.order = shard.tail_order()
        queue.put(job, 1)
    shard.changes.jobs.to_write.add_many([job.id for job in ready], None)


def _leave_line(shard: ShardState, queue: Queue, group: Group) -> list[Job]:
    """Takes the jobs that a group has admitted, and those that wait in it, out of it and out of
    lanes; returns them in order.
    """
    admitted = [shard.jobs[job.id] for job in sorted(group.dismiss_all(), key=place_of)]
    found = [
        taken_off_lane(shard, queue, job.id) if job.state is _READY else job for job in admitted
    ]
    while (job := group.take_first()) is not None:
        groups.count_held(queue, job, -1)
        found.append(shard.jobs[job.id])
    # That it was admitted is stored with a job.
    shard.changes.jobs.to_write.add_many([job.id for job in admitted], None)
    return found


def _make_plain(shard: ShardState, queue: Queue, fair: FairShare) -> None:
    ready: dict[str, list[Job]] = {}
    for lane in [lane for lane in queue.lanes() if lane.tenant]:
        ids = [job.id for job in lane if isinstance(job, Job) and job.state is _READY]
        jobs = ready.setdefault(lane.tenant, [])
        jobs += [taken_off_lane(shard, queue, job_id) for job_id in ids]
    queue.be_plain()
    for group in queue.groups:
        tenant = fair.tenants.find(group.name)
        if tenant is not None:
            for job in sorted(tenant.running.values(), key=place_of):
                group.admit(job)
            shard.changes.jobs.to_write.add_many(list(tenant.running), None)
        for job in sorted(ready.get(group.name, ()), key=place_of):
            job.order = shard.tail_order()
            groups.wait(queue, group, job)
        groups.admit_next(shard, queue, group)
