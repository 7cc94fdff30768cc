"""The gate: workers pass it to finish a job, and the parent shuts it before it kills a worker.

On a busy machine the journal is read late, so a worker that seems to have a job may have finished
it. While the gate is shut, no worker finishes a job that it has by the journal. The gate is a lock
on a file, so a process that died blocks no other.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path


class Gate:
    """A lock that many processes pass at once, and one can shut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shut: BufferedWriter | None = None

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Waits while the gate is shut; it cannot be shut during the block."""
        # Opened each time: threads that shared a file would share its lock.
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def shut(self) -> None:
        """Waits until no process is passing, and shuts the gate."""
        if self._shut is None:
            file = self.path.open("ab")
            fcntl.flock(file, fcntl.LOCK_EX)
            self._shut = file

    def open(self) -> None:
        """Opens the gate; does nothing if it is open."""
        if self._shut is not None:
            self._shut.close()
            self._shut = None
