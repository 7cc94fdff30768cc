"""What limits let out, said as plainly as can be: tokens are fractions, jobs are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobOptions, QueueSettings


@dataclass
class ModelBucket:
    """The tokens of a rate. One that is taken off fills on, for the time when it is set again."""

    rate: RateLimit | None = None
    last: RateLimit | None = None
    tokens: Fraction = Fraction(0)
    at_ms: int = 0

    def change(self, rate: RateLimit | None, mono_ms: int) -> None:
        """A rate that was there keeps its tokens; a new one has all that it may have."""
        self.refill(mono_ms)
        is_new = self.last is None
        self.rate, self.last = rate, rate or self.last
        if rate is not None:
            burst = Fraction(rate.most())
            self.tokens = burst if is_new else min(self.tokens, burst)

    def refill(self, mono_ms: int) -> None:
        """Tokens came since it was last asked."""
        if self.last is not None:
            came = Fraction(self.last.rate * (mono_ms - self.at_ms), self.last.period_ms)
            self.tokens = min(self.tokens + came, Fraction(self.last.most()))
        self.at_ms = mono_ms

    def restart(self, mono_ms: int) -> None:
        """Nobody knows what was handed out last."""
        self.tokens, self.at_ms, self.last = Fraction(0), mono_ms, self.rate

    def price(self, options: JobOptions) -> int:
        """What a job takes, but no more than there ever is."""
        return 0 if self.rate is None else min(options.rules.cost, self.rate.most())

    def pays(self, options: JobOptions) -> bool:
        """Takes the tokens of one more job, if there are enough."""
        price = self.price(options)
        if price > self.tokens:
            return False
        self.tokens -= price
        return True


@dataclass
class ModelQueue:
    """A queue's settings, whether it is paused, until when it is limited, and its tokens."""

    settings: QueueSettings = field(default_factory=QueueSettings)
    paused: bool = False
    limited_until_ms: int = 0
    bucket: ModelBucket = field(default_factory=ModelBucket)

    def change(self, settings: QueueSettings, mono_ms: int) -> None:
        self.settings = settings
        self.bucket.change(settings.rate, mono_ms)

    def room(self, wall_ms: int, mono_ms: int, active: int, most: int) -> int:
        """How many jobs may start now, whatever they cost, if a consumer wants so many."""
        self.bucket.refill(mono_ms)
        if self.paused or self.limited_until_ms > wall_ms:
            return 0
        concurrency = self.settings.concurrency
        return most if concurrency is None else min(most, max(concurrency - active, 0))


@dataclass
class ModelLimiter:
    """A named limiter."""

    concurrency: int | None = None
    limited_until_ms: int = 0
    bucket: ModelBucket = field(default_factory=ModelBucket)

    def has_place(self, wall_ms: int, active: int) -> bool:
        """Whether one more job may start, whatever it costs."""
        is_full = self.concurrency is not None and active >= self.concurrency
        return not is_full and self.limited_until_ms <= wall_ms


class ModelLimiters:
    """The limiters that there are. `active` counts the jobs of a name that are ACTIVE."""

    def __init__(self, active: Callable[[str], int]) -> None:
        self.active = active
        self.by_name: dict[str, ModelLimiter] = {}

    def put(self, name: str, rate: RateLimit | None, concurrency: int | None, mono_ms: int) -> None:
        limiter = self.by_name.setdefault(name, ModelLimiter())
        limiter.concurrency = concurrency
        limiter.bucket.change(rate, mono_ms)

    def _of(self, options: JobOptions) -> dict[str, ModelLimiter]:
        """Those that a job passes. A name that does not exist limits nothing."""
        names = options.rules.limiters
        return {name: self.by_name[name] for name in names if name in self.by_name}

    def let_out(self, options: JobOptions, wall_ms: int, mono_ms: int) -> bool:
        """Whether all of a job's limiters let one more start."""
        for name, limiter in self._of(options).items():
            limiter.bucket.refill(mono_ms)
            if not limiter.has_place(wall_ms, self.active(name)):
                return False
            if limiter.bucket.price(options) > limiter.bucket.tokens:
                return False
        return True

    def take(self, options: JobOptions) -> None:
        """A job that is let out takes from each."""
        for limiter in self._of(options).values():
            assert limiter.bucket.pays(options)

    def missing(self, pushed: Iterable[JobOptions]) -> bool:
        """Whether a job names a limiter that does not exist."""
        return any(name not in self.by_name for one in pushed for name in one.rules.limiters)
