"""A queue's settings for its dead jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from jobline._arguments import duration_given, message_of
from jobline._times import Seconds, from_duration
from jobline.v1 import queue_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """What becomes of a queue's dead jobs. None: the server's default.

    - `expire_after`: how long one is kept, 1 s … 400 days (default: the age of the queue's
      retention, else 7 days); `keep_forever`: they do not expire.
    - `max_bytes`: bytes that they may take, 1 MiB … 1 TiB (default 1 GiB); over it the oldest go.
    - `auto_retry`: jobs that die from now on are put back by themselves, `auto_retry_first_delay`
      after their death (1 s … 30 days, default 1 h), twice as long each time after that, and
      `auto_retry_max` times at most (1 … 20, default 3), counted across deaths.
    """

    expire_after: Seconds | None = None
    keep_forever: bool = False
    max_bytes: int | None = None
    auto_retry: bool = False
    auto_retry_first_delay: Seconds | None = None
    auto_retry_max: int | None = None

    @classmethod
    def from_message(cls, message: queue_pb2.DeadLetters) -> Self:
        """Returns the value of the protocol's message; spans are timedeltas."""
        has = message.HasField
        expires, delayed = has("expire_after"), has("auto_retry_first_delay")
        return cls(
            expire_after=from_duration(message.expire_after) if expires else None,
            keep_forever=message.keep_forever,
            max_bytes=message.max_bytes if has("max_bytes") else None,
            auto_retry=message.auto_retry,
            auto_retry_first_delay=(
                from_duration(message.auto_retry_first_delay) if delayed else None
            ),
            auto_retry_max=message.auto_retry_max if has("auto_retry_max") else None,
        )

    def to_message(self) -> queue_pb2.DeadLetters:
        """Returns the message of the protocol."""
        return message_of(
            queue_pb2.DeadLetters,
            expire_after=duration_given("dead_letters.expire_after", self.expire_after),
            keep_forever=self.keep_forever,
            max_bytes=self.max_bytes,
            auto_retry=self.auto_retry,
            auto_retry_first_delay=duration_given(
                "dead_letters.auto_retry_first_delay", self.auto_retry_first_delay
            ),
            auto_retry_max=self.auto_retry_max,
        )
