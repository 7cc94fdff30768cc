"""A schedule: when it runs, what it pushes, and what became of its runs.

A *run* is named by its time before jitter, in milliseconds since 1970. Nothing here knows cron or
time zones: which times a schedule has is computed by the runtime and comes as values (`DueRuns`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions, JobState


class Overlap(IntEnum):
    """What to do at a time while the last job of the schedule is unfinished."""

    SKIP = 1
    ALLOW = 2
    REPLACE = 3
    BUFFER_ONE = 4


class Missed(IntEnum):
    """What to do with runs that were missed."""

    SKIP = 1
    ONCE = 2
    ALL = 3


class SkipReason(IntEnum):
    """Why a run pushed nothing."""

    OVERLAP = 1
    NO_WORKER = 2
    REFUSED = 3
    DUPLICATE = 4
    REPLACED = 5


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """The job that a schedule pushes. `delay_ms` counts from each run."""

    options: JobOptions = DEFAULT_OPTIONS
    ties: Ties = NO_TIES
    payload: bytes = b""
    delay_ms: int = 0


EMPTY_JOB = JobTemplate()


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """The settings of a schedule: it has either `cron` or `every_ms`; times of 0 are unset, and a
    `limit` of 0 is none.
    """

    queue: str
    cron: str = ""
    every_ms: int = 0
    time_zone: str = ""
    start_ms: int = 0
    end_ms: int = 0
    limit: int = 0
    immediately: bool = False
    jitter_ms: int = 0
    skip_if_no_worker: bool = False
    job: JobTemplate = EMPTY_JOB
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.SKIP

    def timing(self) -> tuple[object, ...]:
        """Returns what decides about its times: while it stays the same, so does the next run."""
        return self.cron, self.every_ms, self.time_zone, self.start_ms, self.end_ms, self.limit


class DueRuns(NamedTuple):
    """The runs of a schedule that are due: the last ones, in order; how many earlier ones were
    left out of the list; and the next one that is not due, 0 if there is none.
    """

    times_ms: tuple[int, ...]
    dropped: int
    next_ms: int


NONE_DUE = DueRuns((), 0, 0)


class Schedule:
    """The state of a schedule. It changes by facts alone, but for `armed_ms`."""

    __slots__ = (
        "anchor_ms",
        "armed_ms",
        "changed_ms",
        "count",
        "created_ms",
        "last_ended_ms",
        "last_fired_ms",
        "last_job_id",
        "last_ms",
        "last_state",
        "missed",
        "name",
        "next_ms",
        "number",
        "pause_reason",
        "paused",
        "paused_by",
        "settings",
        "skip_message",
        "skip_ms",
        "skip_reason",
        "skipped",
        "waiting_ms",
    )

    def __init__(self, name: str, number: int, settings: ScheduleSettings) -> None:
        self.name = name
        self.number = number
        self.settings = settings
        self.anchor_ms = 0
        """Where the multiples of `every_ms` begin."""
        self.next_ms = 0
        """The next run; 0 if there is none."""
        self.waiting_ms = 0
        """The run that waits for the last job to end; 0 if none does."""
        self.count = 0
        self.skipped = 0
        self.missed = 0
        self.last_ms = 0
        self.last_fired_ms = 0
        self.last_job_id = 0
        self.last_state: JobState | None = None
        """How the last job ended; None if it has not, or was deleted."""
        self.last_ended_ms = 0
        self.skip_ms = 0
        self.skip_reason: SkipReason | None = None
        self.skip_message = ""
        self.paused = False
        self.paused_by = ""
        self.pause_reason = ""
        self.created_ms = 0
        self.changed_ms = 0
        # Bookkeeping.
        self.armed_ms: int | None = None
        """The time of its valid entry among the timers."""

    def is_running(self) -> bool:
        """Returns whether its last job has not ended, as far as it was told."""
        return bool(self.last_job_id) and not self.last_ended_ms

    def runs_left(self) -> int | None:
        """Returns how many more jobs it may push, one that waits included; None: any number."""
        limit = self.settings.limit
        return max(limit - self.count, 0) if limit else None

    def starts_ms(self, run_ms: int) -> int:
        """Returns when a run starts, with its jitter."""
        return run_ms + jitter_of(self.name, run_ms, self.settings.jitter_ms)

    def next_start_ms(self) -> int | None:
        """Returns when it runs next; None if it does not."""
        return None if self.paused or not self.next_ms else self.starts_ms(self.next_ms)


def jitter_of(name: str, run_ms: int, jitter_ms: int) -> int:
    """Returns how much later a run starts, 0 … `jitter_ms`: always the same for the same run."""
    if not jitter_ms:
        return 0
    return crc32(f"{name}\n{run_ms}".encode()) * (jitter_ms + 1) >> 32
