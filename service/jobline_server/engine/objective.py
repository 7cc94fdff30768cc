"""The objective of a queue: how soon its jobs shall start. Nothing is refused or put first for it;
`engine/staffing` says how many workers it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.limits import DAY_MS

# Nobody can promise all jobs, and nothing starts faster than that.
PERCENT_MIN, PERCENT_MAX = 1.0, 99.99
START_WITHIN_MS_MIN, START_WITHIN_MS_MAX = 100, 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class Objective:
    """Of a hundred jobs, `percent` start within `start_within_ms` from when they are READY."""

    percent: float
    start_within_ms: int
