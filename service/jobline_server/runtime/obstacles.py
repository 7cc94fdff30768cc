"""Obstacles: why a job does not run, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ObstacleKind(IntEnum):
    """Why a job does not run."""

    NOT_DUE = 1
    QUEUE_PAUSED = 2
    NO_WORKER = 3
    UNHANDLED_NAME = 4
    JOBS_AHEAD = 5
    RUNNING = 6
    ENDED = 7
    NOT_DURABLE = 8
    WORKERS_BUSY = 9
    TOO_LARGE = 10
    WORKER_VERSION = 20
    SLOTS = 21
    GROUP_PAUSED = 29
    GROUP_HELD = 30
    GROUP_BUSY = 31
    STICKY = 37
    RATE_LIMITED = 33
    CONCURRENCY_LIMITED = 34
    LIMITED_FOR_A_TIME = 35
    LIMITER = 36
    KEY_HELD = 23
    OTHER_TENANTS = 38
    DEPENDENCIES = 26


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why a job does not run, with a sentence for people."""

    kind: ObstacleKind
    message: str
    until_ms: int = 0
    count: int = 0
