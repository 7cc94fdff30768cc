"""The health of shards, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(Enum):
    """How a shard is doing. Of an UNKNOWN one nobody knows whether its last commit is stored; a
    FENCED one is written by another process.
    """

    OPEN = "open"
    UNKNOWN = "unknown"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class ClosedShard:
    """What is left of a shard that is not served any more, for those who ask why."""

    number: int
    epoch: int
    offset: int
    checkpoint_offset: int
    health: Health
    why: str

    def __str__(self) -> str:
        return f"shard {self.number} is not served any more ({self.health.value}): {self.why}"
