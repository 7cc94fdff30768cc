"""A minute of a queue: counts that are kept for those who look later."""

from __future__ import annotations

from typing import NamedTuple


class QueueMinute(NamedTuple):
    """What happened in a queue in one minute, of those since 1970. `failed` counts attempts, all
    else jobs. `waited_p50_ms` and `waited_p95_ms`: how long jobs were READY that were handed out in
    it; None if none was.
    """

    queue: str
    minute: int
    pushed: int
    completed: int
    failed: int
    dead: int
    waited_p50_ms: int | None
    waited_p95_ms: int | None
