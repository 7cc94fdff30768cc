"""What a push does while another job holds its unique key."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

from jobline._enums import PushOutcome

# The outcomes of jobs that were stored.
STORED_OUTCOMES = frozenset(
    {PushOutcome.CREATED, PushOutcome.REPLACED, PushOutcome.DEBOUNCED, PushOutcome.PARKED}
)


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


UniqueModeName = (
    UniqueMode
    | Literal[
        "keep",
        "replace",
        "extend",
        "reject",
        "debounce",
        "throttle",
        "after_active",
        "supersede",
    ]
)
"""What a push does while another job holds its unique key, or its name."""

_MODES: dict[int, UniqueMode] = {int(mode): mode for mode in UniqueMode}


def known_mode(number: int) -> UniqueMode | None:
    """Returns the mode with this number of the protocol; None for one that is unset or unknown."""
    return _MODES.get(number)
