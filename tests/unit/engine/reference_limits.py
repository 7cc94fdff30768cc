"""What limits let out, said as plainly as can be: tokens are fractions, jobs are counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from jobline_server.engine.values import JobOptions, QueueSettings


@dataclass
class ModelQueue:
    """A queue's settings, whether it is paused, until when it is limited, and its tokens."""

    settings: QueueSettings = field(default_factory=QueueSettings)
    paused: bool = False
    limited_until_ms: int = 0
    tokens: Fraction = Fraction(0)
    at_ms: int = 0

    def change(self, settings: QueueSettings, mono_ms: int) -> None:
        """A rate that was there keeps its tokens; a new one has all that it may have."""
        self.refill(mono_ms)
        had_rate, rate = self.settings.rate is not None, settings.rate
        self.settings = settings
        if rate is not None:
            burst = Fraction(rate.burst or rate.rate)
            self.tokens = min(self.tokens, burst) if had_rate else burst

    def refill(self, mono_ms: int) -> None:
        """Tokens came since it was last asked."""
        rate = self.settings.rate
        if rate is not None:
            came = Fraction(rate.rate * (mono_ms - self.at_ms), rate.period_ms)
            self.tokens = min(self.tokens + came, Fraction(rate.burst or rate.rate))
        self.at_ms = mono_ms

    def restart(self, mono_ms: int) -> None:
        """Nobody knows what was handed out last."""
        self.tokens, self.at_ms = Fraction(0), mono_ms

    def pays(self, options: JobOptions) -> bool:
        """Takes the tokens of one more job, if there are enough."""
        rate = self.settings.rate
        if rate is None:
            return True
        price = min(options.rules.cost, rate.burst or rate.rate)
        if self.tokens < price:
            return False
        self.tokens -= price
        return True

    def room(self, wall_ms: int, mono_ms: int, active: int, most: int) -> int:
        """How many jobs may start now, whatever they cost, if a consumer wants so many."""
        self.refill(mono_ms)
        if self.paused or self.limited_until_ms > wall_ms:
            return 0
        concurrency = self.settings.concurrency
        return most if concurrency is None else min(most, max(concurrency - active, 0))
