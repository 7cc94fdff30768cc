"""Facts of BLOCKED jobs, which wait for other jobs. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class JobsUnblocked:
    """BLOCKED jobs of one queue wait for no other job any more: each is READY, at the tail of its
    lane, or SCHEDULED if its time has not come.
    """

    at_ms: int
    queue: str
    ids: list[int]
    # ----
    run_at_ms: list[int] = field(default_factory=list)  # 0 for READY ones; `apply` sets it
