"""The rule of unique keys, of a job or of a queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class UniqueMode(IntEnum):
    """What a push does while another job holds its unique key."""

    KEEP = 1
    REPLACE = 2
    EXTEND = 3
    REJECT = 4
    DEBOUNCE = 5
    THROTTLE = 6
    AFTER_ACTIVE = 7
    SUPERSEDE = 8


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """What a push does while another job holds its unique key, for how long a job holds it, and how
    long DEBOUNCE may delay a job. `None` means the queue's setting, then the default: KEEP, as long
    as the job is unfinished, and without a limit.
    """

    mode: UniqueMode | None = None
    ttl_ms: int | None = None
    max_wait_ms: int | None = None


NO_UNIQUE_RULE = UniqueRule()
