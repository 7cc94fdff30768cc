"""Groups of a queue: their settings, to read and to change, and their counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Literal, Self, TypedDict

from jobline._arguments import member_given, message_given, message_of
from jobline._rate_limit import RateLimit
from jobline._reading import read
from jobline.v1 import queue_pb2


class OnDeadHead(IntEnum):
    """What a group does when a job of it that ran is dead."""

    CONTINUE = 1
    HOLD = 2


OnDeadHeadName = OnDeadHead | Literal["continue", "hold"]
"""What a group does, or its name."""


_DEAD_HEADS: dict[int, OnDeadHead] = {int(one): one for one in OnDeadHead}


class GroupSettingsHow(TypedDict, total=False):
    """The fields of `GroupSettings` as keywords; None takes a setting back to its default."""

    concurrency: int | None
    max_waiting: int | None
    on_dead_head: OnDeadHeadName | None
    weight: int | None
    rate: RateLimit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """How a group's jobs are handed out. None: as its queue has it, or the default.

    - `concurrency`: how many jobs of the group may run at a time, 1 … 1,000 (default 1; in a fair
      queue no limit).
    - `max_waiting`: how many may wait, 1 … 100,000 (default 100,000; in a fair queue no limit).
    - `on_dead_head`: what the group does when a job that ran is dead: "continue" (default), or
      "hold" until that job is retried or deleted.
    - `weight`: in a fair queue, the group's share of the workers' time, 1 … 1,000 (default 1).
    - `rate`: how many jobs of the group may start in a time (default: no limit).
    """

    concurrency: int | None = None
    max_waiting: int | None = None
    on_dead_head: OnDeadHeadName | None = None
    weight: int | None = None
    rate: RateLimit | None = None

    @classmethod
    def from_message(cls, message: queue_pb2.GroupSettings) -> Self:
        """Returns the value of the protocol's message."""
        return cls(
            concurrency=message.concurrency if message.HasField("concurrency") else None,
            max_waiting=message.max_waiting if message.HasField("max_waiting") else None,
            on_dead_head=_DEAD_HEADS.get(message.on_dead_head),
            weight=message.weight if message.HasField("weight") else None,
            rate=RateLimit.from_message(message.rate) if message.HasField("rate") else None,
        )

    def to_message(self) -> queue_pb2.GroupSettings:
        """Returns the message of the protocol."""
        on_dead_head = member_given("group.on_dead_head", OnDeadHead, self.on_dead_head)
        return message_of(
            queue_pb2.GroupSettings,
            concurrency=self.concurrency,
            max_waiting=self.max_waiting,
            on_dead_head=on_dead_head,
            weight=self.weight,
            rate=message_given("rate", self.rate, RateLimit),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of a queue: one entity, whose jobs run in order.

    - `ready`, `active`, `scheduled`: its jobs; of the READY ones all but the next are held by it.
    - `paused`: none of its jobs is leased; `paused_by` and `pause_reason`: by whom and why.
    - `dead_heads`: dead jobs that hold it until they are retried or deleted.
    - `weight`, `worker_time`: in a fair queue, its weight, and how long workers have held its jobs
      in all.
    - `limited_until`: until when it hands out nothing, as `limit` or a worker said; `limited_by`
      and `limited_reason`: by whom and why.
    - `tokens`: those of its rate that are in store; None without a rate.
    """

    queue: str
    group: str
    settings: GroupSettings
    ready: int
    active: int
    scheduled: int
    paused: bool
    paused_by: str
    pause_reason: str
    dead_heads: tuple[int, ...]
    weight: int | None = None
    worker_time: timedelta | None = None
    limited_until: datetime | None
    limited_by: str
    limited_reason: str
    tokens: int | None

    @classmethod
    def from_message(cls, message: queue_pb2.Group) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message, settings=GroupSettings.from_message(message.settings))
