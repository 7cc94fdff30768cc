"""Facts of schedules. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine.schedule import ScheduleSettings, SkipReason


@dataclass(slots=True)
class ScheduleChanged:
    """A schedule has these settings from now on; it is new if none had its name."""

    at_ms: int
    name: str
    number: int
    settings: ScheduleSettings
    anchor_ms: int
    next_ms: int


@dataclass(slots=True)
class ScheduleDeleted:
    """A schedule was deleted."""

    at_ms: int
    name: str


@dataclass(slots=True)
class SchedulePaused:
    """A schedule was paused."""

    at_ms: int
    name: str
    principal: str
    reason: str


@dataclass(slots=True)
class ScheduleResumed:
    """A schedule was resumed; it runs next at `next_ms`, 0 for never."""

    at_ms: int
    name: str
    next_ms: int


@dataclass(slots=True)
class ScheduleTicked:
    """Times of a schedule came: the runs `fired_ms` pushed `job_ids`, the runs `skipped_ms` pushed
    nothing, `missed` ones were left out, the last of them `missed_ms`. A run waits for the last job
    to end (`waiting_ms`, or 0), and the next one is `next_ms`, or 0. The jobs are in other facts of
    the same decision, and so of the same commit.
    """

    at_ms: int
    name: str
    queue: str
    fired_ms: list[int] = field(default_factory=list)
    job_ids: list[int] = field(default_factory=list)
    skipped_ms: list[int] = field(default_factory=list)
    skip_reasons: list[SkipReason] = field(default_factory=list)
    skip_message: str = ""
    missed: int = 0
    missed_ms: int = 0
    waiting_ms: int = 0
    next_ms: int = 0


ScheduleFact = ScheduleChanged | ScheduleDeleted | SchedulePaused | ScheduleResumed | ScheduleTicked
