"""How waiting jobs of a queue rise in priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from jobline._arguments import duration_given, message_of
from jobline._times import Seconds, from_duration
from jobline.v1 import queue_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """How jobs rise in priority while they are READY: by `step` (default 1) each time they have
    waited for `after` (10 ms … 400 days), by up to `max` in all (default: no limit).
    """

    after: Seconds
    step: int | None = None
    max: int | None = None

    @classmethod
    def from_message(cls, message: queue_pb2.Ageing) -> Self:
        """Returns the value of the protocol's message; `after` is a timedelta."""
        return cls(
            after=from_duration(message.after),
            step=message.step if message.HasField("step") else None,
            max=message.max if message.HasField("max") else None,
        )

    def to_message(self) -> queue_pb2.Ageing:
        """Returns the message of the protocol."""
        after = duration_given("ageing.after", self.after)
        return message_of(queue_pb2.Ageing, after=after, step=self.step, max=self.max)
