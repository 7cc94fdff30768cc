"""The demo's journal: requests and replies of the clients, one JSON line each, in one file.

Every process appends whole lines to the same file, so the lines of a killed process are complete up
to its last call.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any


class What(StrEnum):
    """The kinds of lines."""

    PUSH_CALLED = "push_called"
    PUSH_ANSWERED = "push_answered"
    HANDED = "handed"
    FINISHED = "finished"
    DROPPED = "dropped"
    ENDED = "ended"
    WORKER_STARTED = "worker_started"
    WORKER_KILLED = "worker_killed"
    SERVER_STARTED = "server_started"
    SERVER_KILLED = "server_killed"


class Journal:
    """Appends lines to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # One write per line to a file opened for appending: lines of several processes do not mix.
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: What, **fields: Any) -> None:
        """Appends a line, with the time of the monotonic clock, the same in all processes."""
        line = json.dumps({"what": what, "at": time.monotonic(), **fields}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


class Reader:
    """Reads lines as they are added."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def new(self) -> Iterator[dict[str, Any]]:
        """Yields the lines added since the last call; keeps half a line for the next call."""
        self._rest += self._file.read()
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """Returns all whole lines of a journal."""
    reader = Reader(path)
    try:
        return list(reader.new())
    finally:
        reader.close()
