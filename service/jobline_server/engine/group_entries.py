"""Facts of groups that no job has a part in. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.group_settings import GroupSettings


@dataclass(slots=True)
class GroupChanged:
    """A group got these settings of its own. `number` is the key of its record."""

    at_ms: int
    queue: str
    group: str
    settings: GroupSettings
    number: int


@dataclass(slots=True)
class GroupPaused:
    """A group was paused: its jobs are not leased. `number` is the key of its record."""

    at_ms: int
    queue: str
    group: str
    principal: str
    reason: str
    number: int


@dataclass(slots=True)
class GroupResumed:
    """A group was resumed."""

    at_ms: int
    queue: str
    group: str


GroupFact = GroupChanged | GroupPaused | GroupResumed
