"""The tokens of groups, said as plainly as can be; a part of the reference model."""

from __future__ import annotations

from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobOptions
from tests.unit.engine.reference_limits import ModelBucket

Key = tuple[str, str]


class ModelGroupRates:
    """A bucket for each group that ever was."""

    def __init__(self) -> None:
        self.buckets: dict[Key, ModelBucket] = {}

    def change(self, key: Key, rate: RateLimit | None, mono_ms: int) -> None:
        self.buckets.setdefault(key, ModelBucket()).change(rate, mono_ms)

    def can_pay(self, key: Key, rate: RateLimit | None, options: JobOptions, mono_ms: int) -> bool:
        """Whether one more job may start, as far as tokens go."""
        self.change(key, rate, mono_ms)
        bucket = self.buckets[key]
        return bucket.price(options) <= bucket.tokens

    def opens_ms(self, key: Key, options: JobOptions, mono_ms: int) -> int:
        """When there will be tokens for this job."""
        bucket = self.buckets[key]
        if bucket.rate is None:
            return mono_ms
        missing = (bucket.price(options) - bucket.tokens) * bucket.rate.period_ms
        return mono_ms - (-missing // bucket.rate.rate)

    def restart(self, rates: dict[Key, RateLimit | None], mono_ms: int) -> None:
        """Nobody knows what groups with a rate have taken."""
        for key, rate in rates.items():
            self.change(key, rate, mono_ms)
            self.buckets[key].restart(mono_ms)

    def delete_queue(self, queue: str) -> None:
        self.buckets = {key: one for key, one in self.buckets.items() if key[0] != queue}
