"""The gate: a worker puts a job down through it, and the show shuts it before it kills one.

Without it the show would kill whom it last read of, and by then that one may have finished: on a
busy machine a journal is read late. While the gate is shut, what the journal says is in somebody's
hands stays there. It is a lock on a file, so nobody is kept waiting by a process that died.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path


class Gate:
    """Passed by many at once, and shut by one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shut: BufferedWriter | None = None

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Waits while the gate is shut; meanwhile it is not shut by anybody."""
        # Opened each time: threads that shared a file would share its lock.
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def shut(self) -> None:
        """Returns when nobody is passing, and from then on nobody does."""
        if self._shut is None:
            file = self.path.open("ab")
            fcntl.flock(file, fcntl.LOCK_EX)
            self._shut = file

    def open(self) -> None:
        """Lets everybody pass; one that is open stays open."""
        if self._shut is not None:
            self._shut.close()
            self._shut = None
