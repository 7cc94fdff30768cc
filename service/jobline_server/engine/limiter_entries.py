"""Facts of limiters. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.limiters import LimiterSettings


@dataclass(slots=True)
class LimiterChanged:
    """A limiter has these settings from now on; it is new if none had its name."""

    at_ms: int
    limiter: LimiterSettings


@dataclass(slots=True)
class LimiterDeleted:
    """A limiter was deleted: jobs that name it go free."""

    at_ms: int
    name: str


LimiterFact = LimiterChanged | LimiterDeleted
