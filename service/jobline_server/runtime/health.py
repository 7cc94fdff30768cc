"""The health of each shard."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    """The health of a shard. UNKNOWN: it is not known whether its last commit is stored. FENCED:
    another process writes it.
    """

    OPEN = "open"
    UNKNOWN = "unknown"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class ClosedShard:
    """What is kept of a closed shard, to answer why it is not served."""

    number: int
    epoch: int
    offset: int
    checkpoint_offset: int
    health: Health
    why: str

    def __str__(self) -> str:
        return f"shard {self.number} is not served any more ({self.health.value}): {self.why}"
