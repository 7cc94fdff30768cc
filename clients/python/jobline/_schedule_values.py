"""Schedules, as the client returns them, and the names of what they do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Literal, Self

from jobline._enums import JobState, known
from jobline._options import JobOptions
from jobline._reading import read
from jobline._times import from_duration, from_timestamp
from jobline.v1 import job_pb2, schedule_service_pb2


class ScheduleOverlap(IntEnum):
    """What a schedule does at a time while its last job is unfinished."""

    UNSPECIFIED = 0
    SKIP = 1
    ALLOW = 2
    REPLACE = 3
    BUFFER_ONE = 4


ScheduleOverlapName = ScheduleOverlap | Literal["skip", "allow", "replace", "buffer_one"]
"""What a schedule does while its last job is unfinished, or its name."""


class ScheduleMissed(IntEnum):
    """What a schedule does with runs that were missed."""

    UNSPECIFIED = 0
    SKIP = 1
    ONCE = 2
    ALL = 3


ScheduleMissedName = ScheduleMissed | Literal["skip", "once", "all"]
"""What a schedule does with runs that were missed, or its name."""


class ScheduleSkipReason(IntEnum):
    """Why a run of a schedule pushed nothing."""

    UNSPECIFIED = 0
    OVERLAP = 1
    NO_WORKER = 2
    REFUSED = 3
    DUPLICATE = 4
    REPLACED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """The job that a schedule pushes: its payload, its options, and its delay after each run."""

    payload: bytes
    options: JobOptions
    unique_key: str
    delay: timedelta | None

    @classmethod
    def from_message(cls, message: job_pb2.NewJob) -> Self:
        """Returns the value of the protocol's message."""
        return cls(
            payload=message.data or message.text.encode(),
            options=JobOptions.from_message(message.options),
            unique_key=message.options.unique_key,
            delay=from_duration(message.delay) if message.HasField("delay") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """When a schedule runs, and what it pushes.

    - `queue`; `job`: what it pushes.
    - `cron`, "" if it has `every`, the time between runs; `time_zone` of `cron`, "" for UTC.
    - `start`, `end`: no runs before and after; `limit`: how many jobs it pushes in all.
    - `immediately`: it also ran at its creation. `jitter`: how much later a run starts at most.
    - `skip_if_no_worker`: whether it skips runs while no worker handles its jobs.
    - `overlap`: what it does while its last job is unfinished; `missed`: with missed runs.
    """

    queue: str
    job: ScheduledJob
    cron: str
    every: timedelta | None
    time_zone: str
    start: datetime | None
    end: datetime | None
    limit: int | None
    immediately: bool
    jitter: timedelta | None
    skip_if_no_worker: bool
    overlap: ScheduleOverlap
    missed: ScheduleMissed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """A run of a schedule that pushed a job.

    - `scheduled_at`: its time, before jitter; `fired_at`: when the job was pushed.
    - `job_id`; `state`: what the job is, or how it ended; UNSPECIFIED if it was deleted;
      `ended_at`: when it ended.
    """

    scheduled_at: datetime | None
    fired_at: datetime | None
    job_id: int
    state: JobState
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSkip:
    """A run of a schedule that pushed nothing: its time, why, and more about it."""

    scheduled_at: datetime | None
    reason: ScheduleSkipReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule: its settings, and what became of its runs.

    - `name`, `settings`; `paused`, with `paused_by` and `pause_reason`.
    - `count`: jobs that it has pushed; `skipped_count`, `missed_count`: runs without a job.
    - `next_run_at`: when it runs next, None if never; `waiting_run_at`: the time of the run that
      waits for the last job to end.
    - `last_run`: the last one that pushed a job; `last_skip`: the last one that did not.
    - `created_at`; `changed_at`: when its settings changed last.
    """

    name: str
    settings: ScheduleSettings
    paused: bool
    paused_by: str
    pause_reason: str
    count: int
    skipped_count: int
    missed_count: int
    next_run_at: datetime | None
    waiting_run_at: datetime | None
    last_run: ScheduleRun | None
    last_skip: ScheduleSkip | None
    created_at: datetime | None
    changed_at: datetime | None

    @classmethod
    def from_message(cls, message: schedule_service_pb2.Schedule) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    """What became of a run by hand: its job, or 0 and why there is none. Neither: the run waits for
    the last job to end.
    """

    job_id: int
    skipped: ScheduleSkipReason
    schedule: Schedule

    @classmethod
    def from_message(cls, message: schedule_service_pb2.TriggerScheduleResponse) -> Self:
        """Returns the value of the protocol's message."""
        return cls(
            job_id=message.job_id,
            skipped=known(ScheduleSkipReason, message.skipped),
            schedule=Schedule.from_message(message.schedule),
        )


def runs_of(message: schedule_service_pb2.PreviewScheduleResponse) -> list[datetime]:
    """Returns the times of a preview."""
    return [from_timestamp(run) for run in message.runs]
