"""Settings of groups: those of one group, and those that a queue has for all of its groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from jobline_server.engine.rates import RateLimit


class OnDeadHead(IntEnum):
    """What a group does when a job of it that ran is dead."""

    CONTINUE = 1
    HOLD = 2


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of a group; `None` means the queue's setting, then the default of `limits`."""

    concurrency: int | None = None
    max_waiting: int | None = None
    on_dead_head: OnDeadHead | None = None
    weight: int | None = None
    """In a fair queue: its share of the workers' time, beside those of others."""
    rate: RateLimit | None = None


NO_GROUP_SETTINGS = GroupSettings()
