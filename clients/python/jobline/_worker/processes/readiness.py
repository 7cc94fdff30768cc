"""Which places of a worker have a child that can take a job, and how many jobs are held back."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jobline._worker.window import WINDOW_MAX


class Readiness:
    """A job that is asked for before a child is ready uses up the time of its attempt while the
    child still imports its modules. `jobs`: how many one place may run at once, a batch.
    """

    def __init__(self, places: int, jobs: int, hold_back: Callable[[int], None]) -> None:
        self._places = places
        self._jobs = jobs
        self._hold_back = hold_back
        self._ready: set[object] = set()
        self._lock = threading.Lock()
        self.has_begun = False
        """Whether any place was ever ready."""

    @property
    def is_any(self) -> bool:
        """Whether some place is ready."""
        return bool(self._ready)

    def began(self, place: object) -> None:
        """Notes that a place has a child that is ready."""
        with self._lock:
            self.has_begun = True
            self._ready.add(place)
            self._say()

    def lost(self, place: object) -> None:
        """Notes that a place has no child, or none that is ready."""
        with self._lock:
            if place in self._ready:
                self._ready.discard(place)
                self._say()

    def _say(self) -> None:
        missing = self._places - len(self._ready)
        self._hold_back(missing * self._jobs if self._ready else WINDOW_MAX)
