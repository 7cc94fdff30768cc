"""Rates: how many jobs may start in a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from jobline._arguments import duration_given, message_of
from jobline._times import Seconds, from_duration
from jobline.v1 import queue_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How many jobs may start in a time, wherever: `rate` per `period` (default 1 s, 10 ms … 31
    days), up to `burst` at once (default: `rate`). Both numbers are 1 … 1,000,000.
    """

    rate: int
    period: Seconds | None = None
    burst: int | None = None

    @classmethod
    def from_message(cls, message: queue_pb2.RateLimit) -> Self:
        """Returns the value of the protocol's message; the period is a timedelta."""
        has = message.HasField
        return cls(
            rate=message.rate,
            period=from_duration(message.period) if has("period") else None,
            burst=message.burst if has("burst") else None,
        )

    def to_message(self) -> queue_pb2.RateLimit:
        """Returns the message of the protocol."""
        return message_of(
            queue_pb2.RateLimit,
            rate=self.rate,
            period=duration_given("rate.period", self.period),
            burst=self.burst,
        )
