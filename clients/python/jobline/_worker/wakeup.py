"""`Wakeup`: wakes the thread that writes, or that supervises."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Wakeup:
    """Wakes one thread. Set many times before the thread runs, it wakes it once."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """Wakes the thread, now or at its next wait."""
        if not self._is_set:
            self._is_set = True
            self._queue.put(None)

    def wait(self, timeout: float) -> None:
        """Waits until it is set, up to `timeout` seconds."""
        try:
            self._queue.get(timeout=max(0.0, timeout))
        except Empty:
            return
        # Before the caller takes work: what is added from now on wakes it again.
        self._is_set = False
