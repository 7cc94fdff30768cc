"""Allowance: what the limits of a queue let out at a time.

The tokens of its rate, the places of its concurrency, and a time until which it hands out nothing.
A queue without any of them has no allowance and pays nothing. Only the limits are durable: active
jobs are counted by the queue, and buckets are empty at a start (see `rates`).
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.rates import RateLimit, TokenBucket
from jobline_server.engine.values import Now, QueueSettings

# A limit for a time is checked again after this at the latest: it ends by the wall clock, which may
# be set.
RECHECK_MS = 60_000
UNLIMITED = 1 << 40
"""More than any hand-out takes."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A queue or limiter lets nothing out until a wall time; set by whom, and why."""

    until_ms: int
    by: str = ""
    reason: str = ""


class Allowance:
    """The limits of one queue in force, with the fill of its bucket."""

    __slots__ = ("_idle", "bucket", "concurrency", "until_ms")

    def __init__(self) -> None:
        self.bucket: TokenBucket | None = None
        # That of a rate which was taken off: it fills on, and counts if a rate is set again.
        self._idle: TokenBucket | None = None
        self.concurrency: int | None = None
        # Wall time; 0 without.
        self.until_ms = 0

    def set_limits(
        self, rate: RateLimit | None, concurrency: int | None, until_ms: int, mono_ms: int
    ) -> None:
        """Puts limits in force. A rate that is changed, or taken off and set again, keeps its
        tokens; a new one has all.
        """
        before = self.bucket or self._idle
        if rate is None:
            self.bucket, self._idle = None, before
        elif before is None:
            self.bucket = TokenBucket(rate, mono_ms)
        else:
            self.bucket, self._idle = before, None
            before.change(rate, mono_ms)
        self.concurrency = concurrency
        self.until_ms = until_ms

    def restart(self, mono_ms: int) -> None:
        """Empties the bucket, at a start of the server."""
        self._idle = None
        if self.bucket is not None:
            self.bucket.empty(mono_ms)

    def is_over(self) -> bool:
        """Returns whether it limits nothing, and keeps no tokens for a rate that is set again."""
        is_free = self.bucket is None and self.concurrency is None and not self.until_ms
        return is_free and self._idle is None

    def places(self, now: Now, active: int) -> int:
        """Returns how many jobs may start now, whatever they cost."""
        if self.until_ms > now.wall_ms:
            return 0
        return UNLIMITED if self.concurrency is None else max(self.concurrency - active, 0)

    def tokens(self, mono_ms: int) -> int:
        """Returns how many tokens may be taken now."""
        return UNLIMITED if self.bucket is None else self.bucket.tokens(mono_ms)

    def price(self, cost: int) -> int:
        """Returns the tokens that a job takes: its cost, but no more than there ever are."""
        return cost if self.bucket is None else self.bucket.price(cost)

    def asked_again_ms(self, now: Now, cost: int) -> int | None:
        """Returns when a job of this cost may start, in monotonic milliseconds, if only time has to
        pass; None if another job has to end first.
        """
        if self.until_ms > now.wall_ms:
            return now.mono_ms + min(self.until_ms - now.wall_ms, RECHECK_MS)
        if self.bucket is None:
            return None
        next_ms = self.bucket.next_ms(self.price(cost), now.mono_ms)
        return next_ms if next_ms > now.mono_ms else None


def allowance_of(
    before: Allowance | None, settings: QueueSettings, limited: TimeLimit | None, mono_ms: int
) -> Allowance | None:
    """Returns the allowance of a queue with these limits, None if it has and had none; `before` was
    its allowance until now.
    """
    if before is None and settings.rate is None and settings.concurrency is None and not limited:
        return None
    allowance = before or Allowance()
    until_ms = 0 if limited is None else limited.until_ms
    allowance.set_limits(settings.rate, settings.concurrency, until_ms, mono_ms)
    return None if allowance.is_over() else allowance
