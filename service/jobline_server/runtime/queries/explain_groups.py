"""Explains what holds a job back in its group."""

from __future__ import annotations

from itertools import islice, takewhile

from jobline_server.engine.group import Group
from jobline_server.engine.job import Job
from jobline_server.engine.shard import Shard
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind

# The most jobs of a group counted for one explanation.
WALK_MAX = 10_000


def group_obstacles(job: Job) -> list[Obstacle]:
    """Returns why the group of a READY job does not admit it; none if it has, or if there is no
    group.
    """
    group = job.queue.groups.find(job.ties.group) if job.ties.group else None
    if group is None or group.has_admitted(job):
        return []
    return [*stopped(group), *_busy(group, job)]


def reserved_for(shard: Shard, job: Job) -> list[Obstacle]:
    """Returns that a job waits for the worker that had the last job of its group, if it does."""
    if not job.reserved_for:
        return []
    holder = shard.clocks.holders.get(job.reserved_for)
    worker = "a worker" if holder is None else f"worker {holder.worker}"
    message = f"for at most 5 s it waits for {worker}, which had the last job of its group"
    return [Obstacle(ObstacleKind.STICKY, message)]


def stopped(group: Group) -> list[Obstacle]:
    """Returns whether a group hands out nothing, and why."""
    found: list[Obstacle] = []
    if group.paused:
        who = f" by {group.paused_by}" if group.paused_by else ""
        why = f": {group.pause_reason}" if group.pause_reason else ""
        message = f"group {group.name} is paused{who}{why}"
        found.append(Obstacle(ObstacleKind.GROUP_PAUSED, message))
    if group.limited is not None and group.is_used_up:
        message = f"group {group.name} has used up its rate"
        found.append(Obstacle(ObstacleKind.RATE_LIMITED, message, group.limited.until_ms))
    elif group.limited is not None:
        by = f" by {group.limited.by}" if group.limited.by else ""
        why = f": {group.limited.reason}" if group.limited.reason else ""
        message = f"group {group.name} lets nothing out until a time{by}{why}"
        found.append(Obstacle(ObstacleKind.LIMITED_FOR_A_TIME, message, group.limited.until_ms))
    if group.dead_heads:
        ids = ", ".join(map(str, islice(group.dead_heads, 10)))
        message = (
            f"group {group.name} is held by dead jobs until they are retried or deleted: {ids}"
        )
        found.append(Obstacle(ObstacleKind.GROUP_HELD, message, count=len(group.dead_heads)))
    return found


def _busy(group: Group, job: Job) -> list[Obstacle]:
    before = takewhile(lambda other: other is not job, islice(group.waiting(), WALK_MAX))
    ahead = len(group.admitted) + sum(1 for _ in before)
    if not ahead:
        return []
    go = "job of its group goes" if ahead == 1 else "jobs of its group go"
    at_least = "at least " if ahead >= WALK_MAX else ""
    message = f"{at_least}{ahead:,} {go} before it"
    return [Obstacle(ObstacleKind.GROUP_BUSY, message, count=ahead)]
