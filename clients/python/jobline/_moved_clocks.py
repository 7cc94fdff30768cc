"""How far tests of this process have moved the clocks of their servers.

A wait ends by the clock of this machine. Where a test has moved the clock of its server past the
end of a wait, the time of that wait is over, too. The kit of `jobline_server.testing` moves clocks,
and nothing else does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class MovedClock:
    """The clock of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[object, Callable[[], object]] = {}
        self._seconds = 0.0

    def seconds(self) -> float:
        """Returns how far it was moved in all."""
        return self._seconds

    def move(self, seconds: float) -> None:
        """Says that a test has moved it; wakes those who wait, in this thread."""
        with self._lock:
            self._seconds += seconds
            watchers = list(self._watchers.values())
        for wake in watchers:
            wake()

    @contextmanager
    def watched_by(self, wake: Callable[[], object]) -> Iterator[None]:
        """Calls `wake` after each move within the block."""
        key = object()
        with self._lock:
            self._watchers[key] = wake
        try:
            yield
        finally:
            with self._lock:
                del self._watchers[key]


class _Unmoved(MovedClock):
    """The clock of a server that no test has: it costs its waits next to nothing."""

    @contextmanager
    def watched_by(self, wake: Callable[[], object]) -> Iterator[None]:
        yield


UNMOVED = _Unmoved()

_tracked: dict[str, MovedClock] = {}


def track(target: str) -> MovedClock:
    """Returns the clock of a server that a test has, until `forget`."""
    return _tracked.setdefault(target, MovedClock())


def forget(target: str) -> None:
    """Says that the server has ended."""
    _tracked.pop(target, None)


def clock_of(target: str) -> MovedClock:
    """Returns the clock of a server."""
    return _tracked.get(target, UNMOVED)
