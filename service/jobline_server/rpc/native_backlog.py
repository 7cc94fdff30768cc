"""Whether the native transport is behind with what it has to read and to send.

It shares the processor with all others, so what it has open shows that it wants more of it. But
callers who do not read their replies keep calls open, too, for as long as they like: so it is
behind only while the calls that end took long, from their first byte to the last of their reply.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from pygrpc_native import NativeGrpcFront

# How many calls are open if it is behind, and how long half of those took that were answered.
OPEN_MAX = 256
SLOW_SECONDS = 0.025
# Between two looks at those that ended; after the longer time what ended says nothing about now.
LOOK_SECONDS = 0.025
OLD_SECONDS = 0.25
_ANSWERED = 0


class Backlog:
    """The calls of one port. Its counts take a tenth of a millisecond to read."""

    __slots__ = ("_answered", "_are_slow", "_looked_at", "_metrics", "_slow")

    def __init__(self, front: NativeGrpcFront) -> None:
        self._metrics: Callable[[], dict[str, Any] | None] = front.metrics
        self._looked_at = float("-inf")
        self._are_slow = True
        self._answered = self._slow = 0

    def open_calls(self) -> int:
        """Returns how many calls have begun and are not read to their end."""
        return sum(
            counts["started"] - sum(of_code["count"] for of_code in counts["status"].values())
            for counts in (self._metrics() or {})["methods"].values()
        )

    def are_slow(self, now: float) -> bool:
        """Returns whether half of the calls that were answered lately took long. If that is not
        known, they did.
        """
        since = now - self._looked_at
        if since < LOOK_SECONDS:
            return self._are_slow
        answered, slow = self._count()
        is_known = since < OLD_SECONDS and answered > self._answered
        self._are_slow = not is_known or 2 * (slow - self._slow) >= answered - self._answered
        self._looked_at, self._answered, self._slow = now, answered, slow
        return self._are_slow

    def _count(self) -> tuple[int, int]:
        """Returns how many calls were answered, and how many of these took long."""
        metrics = self._metrics() or {}
        fast_end = bisect_right(metrics["bounds"], SLOW_SECONDS)
        found = [each["status"].get(_ANSWERED) for each in metrics["methods"].values()]
        answered = [counts for counts in found if counts is not None]
        total = sum([counts["count"] for counts in answered])
        return total, total - sum([sum(counts["buckets"][:fast_end]) for counts in answered])
