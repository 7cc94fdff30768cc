"""What a check of files yields: what was checked, what was found, and whether that is damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# Of damaged records, so many are named; all are counted.
NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was checked."""

    what: str
    found: str
    is_damaged: bool = False


class Progress(Protocol):
    """Told how far long work is."""

    def begin(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begins a piece of work, which ends the one before. Returns what is to be called with each
        amount that was done; `total` is None where nobody knows."""


class Named:
    """Counts damaged records, and names the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self._names: list[str] = []

    def add(self, name: str) -> None:
        """Counts one in."""
        self.count += 1
        if len(self._names) < NAMED_MAX:
            self._names.append(name)

    def __str__(self) -> str:
        more = ", …" if self.count > len(self._names) else ""
        return ", ".join(self._names) + more
