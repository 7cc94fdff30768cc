"""Groups: changes, pauses and resumes them."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.decide.queues import existing_queue, known_queue
from jobline_server.engine.group_entries import GroupChanged, GroupPaused, GroupResumed
from jobline_server.engine.group_room import GroupRoom
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def decide_update_group(
    shard: ShardView,
    now: Now,
    queue_name: str,
    name: str,
    settings: GroupSettings,
    mask: frozenset[str] | None,
) -> None:
    """Changes the settings in `mask` (None: all) of a group; creates it and its queue if they do
    not exist. Raises `Refused` with GROUPS_FULL.
    """
    found = shard.queues.get(queue_name)
    group = None if found is None else found.groups.find(name)
    before = NO_GROUP_SETTINGS if group is None else group.settings
    if mask is not None:
        changed = {field: getattr(settings, field) for field in sorted(mask)}
        settings = replace(before, **changed)
    if settings == before:
        return
    check_room(shard, found, name)
    queue = known_queue(shard, now, queue_name)
    number = record_number(shard, queue, name)
    shard.emit(GroupChanged(now.wall_ms, queue_name, name, settings, number))


def decide_pause_group(
    shard: ShardView, now: Now, queue_name: str, name: str, principal: str, reason: str
) -> None:
    """Pauses a group, also one without jobs: none of its jobs are leased. Pausing it again replaces
    the reason. Raises `Refused` with QUEUE_NOT_FOUND or GROUPS_FULL.
    """
    queue = existing_queue(shard, queue_name)
    check_room(shard, queue, name)
    number = record_number(shard, queue, name)
    shard.emit(GroupPaused(now.wall_ms, queue_name, name, principal, reason, number))


def decide_resume_group(shard: ShardView, now: Now, queue_name: str, name: str) -> None:
    """Resumes a group; does nothing if it is not paused. Raises `Refused` with QUEUE_NOT_FOUND."""
    group = existing_queue(shard, queue_name).groups.find(name)
    if group is not None and group.paused:
        shard.emit(GroupResumed(now.wall_ms, queue_name, name))


def check_room(shard: ShardView, queue: Queue | None, name: str) -> None:
    """Refuses a new group if the server has as many as it may."""
    is_new = queue is None or queue.groups.find(name) is None
    refusal = GroupRoom(shard.load).refusal_of_new(int(is_new))
    if refusal is not None:
        raise refusal


def record_number(shard: ShardView, queue: Queue, name: str) -> int:
    """Returns the key of a group's record, a new id if it has none."""
    group = queue.groups.find(name)
    return group.number if group is not None and group.number else shard.next_id()
