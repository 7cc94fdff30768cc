"""What a worker counts for its metrics: outcomes, and how long handlers took."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from jobline._context import Context
from jobline.v1 import job_service_pb2 as pb

OUTCOMES = (
    "completed", "failed", "retried", "snoozed", "cancelled", "dead", "rate_limited", "released",
)  # fmt: skip
BUCKETS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds; one more bucket has no bound."""
NAMES_MAX = 100
OTHER = "other"

_FAILS = {pb.FAIL_ACTION_CANCEL: "cancelled", pb.FAIL_ACTION_DEAD: "dead"}
_RELEASES = {pb.RELEASE_REASON_SNOOZE: "snoozed", pb.RELEASE_REASON_LIMITED: "rate_limited"}


def outcome_of(item: pb.FailItem | pb.ReleaseItem) -> str:
    """Returns what a settle is counted as. `retried` has a pause of the handler's own."""
    if isinstance(item, pb.ReleaseItem):
        return _RELEASES.get(item.why, "released")
    retried = "retried" if item.HasField("retry_after") else "failed"
    return _FAILS.get(item.then, retried)


@dataclass(slots=True)
class Histogram:
    """How long the handlers of one name took."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts one handler."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class Counts:
    """What a worker has done since it started."""

    done: int = 0
    failed: int = 0
    released: int = 0
    lost: int = 0
    opened: int = 0


class Tallies:
    """Counts for the metrics of one worker. Safe on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._histograms: dict[str, Histogram] = {}
        self._began: dict[tuple[int, int], float] = {}

    def settled(self, outcome: str, count: int = 1) -> None:
        """Counts settled jobs."""
        with self._lock:
            self._outcomes[outcome] += count

    def began(self, lease: tuple[int, int]) -> None:
        """Notes when a handler began."""
        self._began[lease] = time.monotonic()

    def ended(self, lease: tuple[int, int], context: Context) -> None:
        """Counts how long a handler took."""
        began = self._began.pop(lease, None)
        if began is None:
            return
        with self._lock:
            histogram = self._histograms.get(context.name)
            if histogram is None:
                name = context.name if len(self._histograms) < NAMES_MAX else OTHER
                histogram = self._histograms.setdefault(name, Histogram())
            histogram.add(time.monotonic() - began)

    def outcomes(self) -> dict[str, int]:
        """Returns the settled jobs by outcome; all outcomes are there."""
        with self._lock:
            return {outcome: self._outcomes[outcome] for outcome in OUTCOMES}

    def histograms(self) -> dict[str, tuple[list[int], float]]:
        """Returns counts by bucket and the sum of seconds, by name of job."""
        with self._lock:
            return {name: ([*one.counts], one.total) for name, one in self._histograms.items()}
