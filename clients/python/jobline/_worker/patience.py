"""Patience with handlers that were told to stop: how long each may take to heed it. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Patience(Generic[K]):
    """Since when each handler should have stopped; it ends once for each, `grace` seconds later."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._since: dict[K, float] = {}
        self._lost: set[K] = set()

    def over(self, now: float, told: Iterable[K]) -> list[K]:
        """Those of `told`, who were told to stop and have not, with whom it is over now. Who is not
        among them any more has stopped, and is forgotten.
        """
        self._since = {key: self._since.get(key, now) for key in told}
        self._lost.intersection_update(self._since)
        late = [key for key, since in self._since.items() if now - since >= self._grace]
        found = [key for key in late if key not in self._lost]
        self._lost.update(found)
        return found

    def next_deadline(self) -> float | None:
        """When it is over with somebody."""
        waited_for = (since for key, since in self._since.items() if key not in self._lost)
        first = min(waited_for, default=None)
        return None if first is None else first + self._grace
