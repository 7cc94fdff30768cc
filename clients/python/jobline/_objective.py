"""How soon the jobs of a queue shall start, and how many workers that takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from jobline._arguments import duration_given, message_of
from jobline._times import Seconds, from_duration
from jobline.v1 import queue_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Of a hundred jobs, `percent` (1 … 99.99) shall start within `start_within` (100 ms … 7 days)
    from when they are READY.
    """

    percent: float
    start_within: Seconds

    @classmethod
    def from_message(cls, message: queue_pb2.Objective) -> Self:
        """Returns the value of the protocol's message; `start_within` is a timedelta."""
        return cls(percent=message.percent, start_within=from_duration(message.start_within))

    def to_message(self) -> queue_pb2.Objective:
        """Returns the message of the protocol."""
        start_within = duration_given("objective.start_within", self.start_within)
        return message_of(queue_pb2.Objective, percent=self.percent, start_within=start_within)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersNeeded:
    """How many workers keep the objective of a queue, each with `slots_per_worker` jobs at a time,
    and what that follows from: jobs that wait, jobs that come a second, and how long one runs on
    average (None: not known).
    """

    workers: int
    slots_per_worker: float
    backlog: int
    arrivals_per_second: float
    mean_run: timedelta | None
