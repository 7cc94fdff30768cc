"""The meter of commits."""

from __future__ import annotations

import pytest

from jobline_server.runtime.commits.meter import BYTES_BOUNDS, CommitMeter
from jobline_server.storage.store import JournalRow


def test_a_commit_counts_with_its_time_and_with_the_bytes_of_all_its_rows() -> None:
    """One observation of each, whatever it wrote."""
    meter = CommitMeter()
    rows = [JournalRow(shard, 1, 1, 0, 0, bytes(200)) for shard in range(3)]

    meter.add(0.02, rows)
    meter.add(0.04, [])

    assert meter.seconds.seconds == pytest.approx(0.06)
    assert sum(meter.seconds.buckets) == 2
    assert meter.bytes.seconds == 600
    assert meter.bytes.buckets[: len(BYTES_BOUNDS)][:2] == [1, 1]
    assert meter.mean_seconds == pytest.approx(0.02 * 0.05 * 0.95 + 0.04 * 0.05)
