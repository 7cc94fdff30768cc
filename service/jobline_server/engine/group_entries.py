"""Facts of groups that no job has a part in. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class GroupLimited:
    """A group lets nothing out until a wall time, as `principal` said, or because it has used up
    its rate (`is_used_up`); 0: it goes on. `number` is the key of its record; `leased` are jobs of
    it that go out in the same step.
    """

    at_ms: int
    queue: str
    group: str
    until_ms: int
    principal: str = ""
    reason: str = ""
    number: int = 0
    is_used_up: bool = False
    leased: list[int] = field(default_factory=list)


GroupFact = GroupChanged | GroupPaused | GroupResumed | GroupLimited
