"""The log of a job, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Literal

from jobline._enums import JobState


class LogLevel(IntEnum):
    """How much a line of a job's log matters."""

    UNSPECIFIED = 0
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


LogLevelName = LogLevel | Literal["debug", "info", "warning", "error"]
"""A level, or its name."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a job's log: its `number` in it, from 1; when it was written `at`, by the
    worker's clock; and the `attempt` that wrote it.
    """

    number: int
    at: datetime | None
    level: LogLevel
    text: str
    attempt: int


@dataclass(frozen=True, slots=True)
class JobLog:
    """The log of a job: the last 1,000 `lines`, at most 1 MiB. `dropped`: how many lines the job
    wrote before those that are kept. `state`: where the job stands.
    """

    lines: tuple[LogLine, ...]
    dropped: int
    state: JobState
