"""Evictions: dead letters that are deleted because their queue keeps no more of them. Nobody chose
these jobs, so they are logged and counted in the metrics.
"""

from __future__ import annotations

from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.values import JobState
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# A queue whose jobs keep dying loses some every second: at most one line per queue in this time.
LOG_EVERY_MS = 60_000


class Evictions:
    """Dead letters that were evicted since the start."""

    def __init__(self) -> None:
        self.count = 0
        # By queue: when it was logged, and how many were evicted since.
        self._logged: dict[str, tuple[int, int]] = {}

    def add(self, fact: JobsDeleted) -> None:
        """Counts and logs jobs that were deleted, if they are dead ones that were evicted."""
        if fact.evicted and fact.state is JobState.DEAD:
            self._evicted(fact.queue, sum(fact.counts), fact.at_ms)

    def _evicted(self, queue: str, count: int, at_ms: int) -> None:
        self.count += count
        logged_ms, unlogged = self._logged.get(queue, (0, 0))
        if at_ms - logged_ms < LOG_EVERY_MS:
            self._logged[queue] = logged_ms, unlogged + count
            return
        LOG.warning("dead letters evicted", queue=queue, count=unlogged + count)
        self._logged[queue] = at_ms, 0
