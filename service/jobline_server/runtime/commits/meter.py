"""The meter of commits: how long they took, fsync included, and how large they were."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jobline_server.storage.store import JournalRow
from jobline_server.telemetry.calls import Histogram

# Upper bounds in bytes: one small ack, to a push of the largest payload.
BYTES_BOUNDS = (
    *(256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0),
    *(1_048_576.0, 4_194_304.0, 16_777_216.0, 67_108_864.0, 268_435_456.0),
)
# The weight of a commit in the mean: about the last twenty count.
SHARE = 0.05


class CommitMeter:
    """Commits since the start. `mean_seconds` is that of the last ones."""

    __slots__ = ("bytes", "mean_seconds", "seconds")

    def __init__(self) -> None:
        self.mean_seconds = 0.0
        self.seconds = Histogram()
        self.bytes = Histogram(BYTES_BOUNDS)

    def add(self, seconds: float, rows: Sequence[JournalRow]) -> None:
        """Adds a commit that wrote these rows."""
        self.mean_seconds += (seconds - self.mean_seconds) * SHARE
        size = 0
        for row in rows:
            size += len(row.blob)
        # A call costs as much as all the rest of this, once for each commit.
        for histogram, value in ((self.seconds, seconds), (self.bytes, size)):
            histogram.buckets[bisect_left(histogram.bounds, value)] += 1
            histogram.seconds += value
