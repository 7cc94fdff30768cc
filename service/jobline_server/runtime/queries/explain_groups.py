"""Explains what holds a job back in its group."""

from __future__ import annotations

from itertools import islice, takewhile

from jobline_server.engine.group import Group, rate_of
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job import Job
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import Now
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind
from jobline_server.runtime.queries.explain_limits import told

# The most jobs of a group counted for one explanation.
WALK_MAX = 10_000


def group_obstacles(job: Job) -> list[Obstacle]:
    """Returns why the group of a READY job does not admit it; none if it has, or if there is no
    group.
    """
    group = job.queue.groups.find(job.ties.group) if job.ties.group else None
    if group is None or group.has_admitted(job):
        return []
    return [*stopped(group, job.queue.settings.group), *_busy(group, job)]


def reserved_for(shard: Shard, job: Job) -> list[Obstacle]:
    """Returns that a job waits for the worker that had the last job of its group, if it does."""
    if not job.reserved_for:
        return []
    holder = shard.clocks.holders.get(job.reserved_for)
    worker = "a worker" if holder is None else f"worker {holder.worker}"
    message = f"for at most 5 s it waits for {worker}, which had the last job of its group"
    return [Obstacle(ObstacleKind.STICKY, message)]


def rate_of_group(shard: Shard, job: Job, now: Now) -> list[Obstacle]:
    """Returns that the group of a READY job has no tokens for it, if no pull has come upon it yet;
    then the group is closed: see `stopped`.
    """
    group = job.queue.groups.find(job.ties.group) if job.ties.group else None
    rate = None if group is None else rate_of(group.settings, job.queue.settings.group)
    if group is None or rate is None or group.is_used_up:
        return []
    bucket = shard.group_rates.shown(job.queue, group, rate, now.mono_ms)
    opens_ms = bucket.next_ms(bucket.price(job.options.rules.cost), now.mono_ms)
    if opens_ms <= now.mono_ms:
        return []
    message = _used_up(group, rate)
    until_ms = now.wall_ms + opens_ms - now.mono_ms
    return [Obstacle(ObstacleKind.RATE_LIMITED, message, until_ms)]


def _used_up(group: Group, rate: RateLimit | None) -> str:
    return f"group {group.name} has used up its rate{f' of {told(rate)}' if rate else ''}"


def stopped(group: Group, defaults: GroupSettings) -> list[Obstacle]:
    """Returns whether a group hands out nothing, and why. `defaults` are those of its queue."""
    found: list[Obstacle] = []
    if group.paused:
        who = f" by {group.paused_by}" if group.paused_by else ""
        why = f": {group.pause_reason}" if group.pause_reason else ""
        message = f"group {group.name} is paused{who}{why}"
        found.append(Obstacle(ObstacleKind.GROUP_PAUSED, message))
    if group.limited is not None and group.is_used_up:
        message = _used_up(group, rate_of(group.settings, defaults))
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
