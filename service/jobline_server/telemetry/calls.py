"""Meters of calls: how many, how long, how they ended; one meter per method.

The buckets of the histogram are fixed, because a scraper can add up buckets of many servers and
cannot add up percentiles.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

# Upper bounds in seconds; the last bucket takes all longer calls.
SECONDS_BOUNDS = (
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    60.0,
)


class Histogram:
    """A histogram of seconds: counts by bucket, and the sum. `bounds` are upper bounds."""

    __slots__ = ("bounds", "buckets", "seconds")

    def __init__(self, bounds: Sequence[float] = SECONDS_BOUNDS) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Adds `count` observations of the same length."""
        self.buckets[bisect_left(self.bounds, seconds)] += count
        self.seconds += seconds * count

    def add_all(self, of: Histogram) -> None:
        """Adds the observations of another histogram with the same bounds."""
        self.buckets = [
            mine + theirs for mine, theirs in zip(self.buckets, of.buckets, strict=True)
        ]
        self.seconds += of.seconds

    def cumulative(self, shown: Collection[float] = ()) -> Iterator[tuple[str, int]]:
        """Yields (upper bound, count at or below it), as Prometheus expects; only for the bounds in
        `shown`, if it has any.
        """
        total = 0
        for bound, count in zip(self.bounds, self.buckets, strict=False):
            total += count
            if not shown or bound in shown:
                yield repr(bound), total
        yield "+Inf", total + self.buckets[-1]


def percentile(buckets: Sequence[int], bounds: Sequence[float], share: float) -> float:
    """Returns the value that this share of the observations is at or below, as far as the buckets
    of a histogram tell; 0 without observations. In the last bucket it is its lower bound.
    """
    rank, below, low = share * sum(buckets), 0, 0.0
    for count, high in zip(buckets, bounds, strict=False):
        if count and below + count >= rank:
            return low + (high - low) * (rank - below) / count
        below, low = below + count, high
    return low if buckets[-1] else 0.0


class CallMeter:
    """The calls of one method. `ended` counts by the name of the status code."""

    __slots__ = ("ended", "in_flight", "method", "seconds", "service", "started")

    def __init__(self, service: str, method: str) -> None:
        self.service = service
        self.method = method
        self.started = 0
        self.in_flight = 0
        self.ended: dict[str, int] = {}
        self.seconds = Histogram()

    def begin(self) -> None:
        """Counts a call that begins."""
        self.started += 1
        self.in_flight += 1

    def end(self, code: str, seconds: float) -> None:
        """Counts a call that ended, by its status code."""
        self.in_flight -= 1
        self.ended[code] = self.ended.get(code, 0) + 1
        self.seconds.add(seconds)

    def refuse(self, code: str, count: int) -> None:
        """Counts calls that ended as they came, all with this status code."""
        self.started += count
        self.ended[code] = self.ended.get(code, 0) + count
        self.seconds.add(0.0, count)


class CallMeters:
    """All meters; each is made when its method is registered."""

    def __init__(self) -> None:
        self._meters: dict[tuple[str, str], CallMeter] = {}

    def of(self, service: str, method: str) -> CallMeter:
        """Returns the meter of a method, the same one each time."""
        key = (service, method)
        if key not in self._meters:
            self._meters[key] = CallMeter(service, method)
        return self._meters[key]

    def __iter__(self) -> Iterator[CallMeter]:
        return iter(self._meters.values())
