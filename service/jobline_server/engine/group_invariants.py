"""Invariants of groups: see `invariants`, which lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobline_server.engine.group import Member, concurrency
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState


def held_jobs(queue: Queue) -> Iterator[Member]:
    """Yields the READY jobs of a queue that are in no lane, as their groups hold them."""
    for group in queue.groups:
        yield from group.waiting()


def count_held(queue: Queue, by_priority: Counter[int], by_name: Counter[str]) -> None:
    """Adds the jobs that groups hold to counts of READY jobs."""
    for job in held_jobs(queue):
        by_priority[job.options.priority] += 1
        by_name[job.options.name] += 1


def groups_add_up(shard: Shard) -> str:
    """G11: each job of a group is in it once, and groups exist for a reason and are counted."""
    live: Counter[tuple[str, str]] = Counter()
    waiting: Counter[int] = Counter()
    for job in shard.jobs.values():
        if job.ties.group:
            live[job.queue.name, job.ties.group] += 1
    total = records = 0
    for name, queue in shard.queues.items():
        held, dead_heads = 0, 0
        for group in queue.groups:
            jobs = [job.id for job in group.waiting()]
            waiting.update(jobs)
            held += len(jobs)
            dead_heads += len(group.dead_heads)
            records += bool(group.number)
            if group.live != live.pop((name, group.name), 0) or group.ready != len(jobs):
                return f"group {group.name} counts {group.live} live jobs, {group.ready} wait"
            if not group.live and not group.has_record():
                return f"group {group.name} has no job and no record"
            if bool(group.number) != group.has_record():
                return f"group {group.name} has the record {group.number}"
        if held != queue.groups.held or dead_heads != len(queue.groups.dead_heads):
            return f"queue {name} counts {queue.groups.held} held jobs of {held}"
        total += len(queue.groups)
    if live or total != shard.load.groups or records != len(shard.group_records):
        return f"{total} groups with {records} records, load says {shard.load.groups}; no {live}"
    return _admitted_or_waiting(shard, waiting)


def _admitted_or_waiting(shard: Shard, waiting: Counter[int]) -> str:
    for job in shard.jobs.values():
        if job.ties.group and job.queue.fair is None:
            group = job.queue.groups.find(job.ties.group)
            admitted = group is not None and group.has_admitted(job)
            waits = waiting.pop(job.id, 0)
            if admitted + waits > 1 or (job.state is JobState.ACTIVE and not admitted):
                return f"job {job.id} is {job.state.name}, {admitted=}, and waits {waits} times"
            if job.state is JobState.READY and not admitted and not waits:
                return f"job {job.id} is READY and its group has lost it"
    return f"jobs {list(waiting)} wait in groups and are not live" if waiting else ""


def groups_run_in_order(shard: Shard) -> str:
    """G11: a group admits no more jobs than it may, none while it is paused or held, and none that
    is behind one that waits.
    """
    for queue in shard.queues.values():
        for group in queue.groups:
            orders = [job.order for job in group.waiting()]
            if orders != sorted(set(orders)):
                return f"group {group.name}: {orders} wait in no order"
            if group.paused and any(job.state is JobState.READY for job in group.admitted):
                return f"group {group.name} is paused and has jobs in lanes"
            has_room = group.has_room(queue.settings.group)
            limit = concurrency(group.settings, queue.settings.group)
            if has_room and orders and limit == 1:
                return f"group {group.name} has room, and jobs wait"
            if any(isinstance(job, Job) and job.volatile for job in group.admitted):
                return f"group {group.name} has a volatile job"
    return ""
