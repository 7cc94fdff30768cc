"""`Relayed`: what a relay did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relayed:
    """What one run of a relay did: rows that were pushed, those of them that had been pushed before
    (their deletion was lost), and rows that the server refused for good.
    """

    pushed: int = 0
    repeated: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """Rows that were dealt with."""
        return self.pushed + self.failed

    def __add__(self, other: Relayed) -> Relayed:
        """Returns what both did."""
        return Relayed(
            self.pushed + other.pushed,
            self.repeated + other.repeated,
            self.failed + other.failed,
        )
