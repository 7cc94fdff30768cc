"""What operations change, as it is at a moment: taken before and after a decision, and compared
before an undo.
"""

from __future__ import annotations

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.group import Group
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings
from jobline_server.engine.operations import Pause
from jobline_server.engine.queue import Queue
from jobline_server.engine.schedule import Schedule
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import DEFAULT_SETTINGS, QueueSettings


def find_group(shard: Shard, queue: str, group: str) -> Group | None:
    """Returns a group, if it exists."""
    found = shard.queues.get(queue)
    return None if found is None else found.groups.find(group)


def pause_of(found: Queue | Group | Schedule | None) -> Pause:
    """Returns whether a queue, group or schedule is paused."""
    if found is None or not found.paused:
        return Pause()
    return Pause(True, found.paused_by, found.pause_reason)


def limit_of(found: Queue | Group | None) -> TimeLimit | None:
    """Returns until when somebody said that a queue or group lets nothing out."""
    if found is None or (isinstance(found, Group) and found.is_used_up):
        return None
    return found.limited


def settings_of(queue: Queue | None) -> QueueSettings:
    """Returns the settings of a queue; one that does not exist has the default ones."""
    return DEFAULT_SETTINGS if queue is None else queue.settings


def group_settings_of(group: Group | None) -> GroupSettings:
    """Returns the settings of a group of its own."""
    return NO_GROUP_SETTINGS if group is None else group.settings
