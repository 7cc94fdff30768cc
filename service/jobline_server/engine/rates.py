"""Rates: token buckets, exact in whole numbers.

A bucket fills with `rate` tokens per `period_ms` and holds up to `burst`; a hand-out takes one, or
as many as its job costs. So in any window there are at most `burst + rate × window` hand-outs. The
fill is counted in units: a token is `period_ms` of them, and `rate` of them come in each
millisecond.

Time is monotonic. The fill is not stored: a hand-out whose fact a crash lost may have taken all of
it, so a bucket is empty at a start of the server and fills from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine import limits


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`rate` tokens per `period_ms`; `burst` (None: as many as `rate`) are the most in store."""

    rate: int
    period_ms: int = limits.RATE_PERIOD_MS_DEFAULT
    burst: int | None = None

    def most(self) -> int:
        """Returns how many tokens a bucket holds at most."""
        return self.rate if self.burst is None else self.burst


class TokenBucket:
    """A bucket with the tokens of one rate limit; full at first."""

    __slots__ = ("_at_ms", "_most_units", "_units", "limit")

    def __init__(self, limit: RateLimit, mono_ms: int) -> None:
        self.limit = limit
        self._at_ms = mono_ms
        self._most_units = limit.most() * limit.period_ms
        # What it held at that time.
        self._units = self._most_units

    def tokens(self, mono_ms: int) -> int:
        """Returns how many whole tokens it holds."""
        return self._fill(mono_ms) // self.limit.period_ms

    def take(self, tokens: int, mono_ms: int) -> None:
        """Takes tokens that the caller has seen in it."""
        self._units = max(self._fill(mono_ms) - tokens * self.limit.period_ms, 0)
        self._at_ms = max(self._at_ms, mono_ms)

    def pays(self, tokens: int, mono_ms: int) -> bool:
        """Takes tokens if it holds as many; returns whether it does."""
        limit, units = self.limit, self._units
        if mono_ms > self._at_ms:
            units += (mono_ms - self._at_ms) * limit.rate
            if units > self._most_units:  # noqa: PLR1730  # `min` costs more
                units = self._most_units
            self._units = units
            self._at_ms = mono_ms
        price = tokens * limit.period_ms
        if price > units:
            return False
        self._units = units - price
        return True

    def price(self, cost: int) -> int:
        """Returns the tokens that a job takes: its cost, but no more than there ever are."""
        return min(cost, self.limit.most())

    def is_full(self, mono_ms: int) -> bool:
        """Returns whether it holds as much as it can."""
        return self._fill(mono_ms) == self._most_units

    def next_ms(self, tokens: int, mono_ms: int) -> int:
        """Returns when it will hold this many tokens, at most `burst`, if none are taken."""
        missing = tokens * self.limit.period_ms - self._fill(mono_ms)
        return mono_ms + max(-(-missing // self.limit.rate), 0)

    def change(self, limit: RateLimit, mono_ms: int) -> None:
        """Goes on with another rate, or the same; the tokens stay, as far as they fit."""
        units = self._fill(mono_ms) * limit.period_ms // self.limit.period_ms
        self.limit = limit
        self._at_ms = max(self._at_ms, mono_ms)
        self._most_units = limit.most() * limit.period_ms
        self._units = min(units, self._most_units)

    def empty(self, mono_ms: int) -> None:
        """Drops all tokens, at a start of the server."""
        self._units, self._at_ms = 0, mono_ms

    def _fill(self, mono_ms: int) -> int:
        limit = self.limit
        came = max(mono_ms - self._at_ms, 0) * limit.rate
        return min(self._units + came, self._most_units)
