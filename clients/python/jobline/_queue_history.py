"""The history of a queue, minute by minute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

HISTORY_PAGE_MINUTES = 1_440
"""As many as one call returns at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMinute:
    """What happened in a queue in the minute that begins at `start_time`.

    - `pushed`, `completed`, `dead`: jobs; `failed`: attempts.
    - `waited_p50`, `waited_p95`: half of the jobs that were handed out in it, and 95 % of them, had
      been READY no longer, as far as a histogram tells; None if none was handed out.
    """

    start_time: datetime
    pushed: int
    completed: int
    failed: int
    dead: int
    waited_p50: timedelta | None
    waited_p95: timedelta | None
