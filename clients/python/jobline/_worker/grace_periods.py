"""Grace periods: how long a handler may run on after it was asked to stop. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class GracePeriods(Generic[K]):
    """The grace period of each handler; it ends once, `grace` seconds after its start."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._since: dict[K, float] = {}
        self._reported: set[K] = set()

    def expired(self, now: float, stopping: Iterable[K]) -> list[K]:
        """Returns the handlers whose grace period has just ended. `stopping` are all that were
        asked to stop and still run; those that are no longer among them are forgotten.
        """
        self._since = {key: self._since.get(key, now) for key in stopping}
        self._reported.intersection_update(self._since)
        late = [key for key, since in self._since.items() if now - since >= self._grace]
        found = [key for key in late if key not in self._reported]
        self._reported.update(found)
        return found

    def next_deadline(self) -> float | None:
        """Returns when the next grace period ends."""
        waited_for = (since for key, since in self._since.items() if key not in self._reported)
        first = min(waited_for, default=None)
        return None if first is None else first + self._grace
