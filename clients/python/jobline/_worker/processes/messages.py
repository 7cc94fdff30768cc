"""What a worker and a child say to each other, each as a pickled tuple on a pipe.

To the child: a job or the jobs of a batch, why handlers should stop, answers to calls, and the end.
To the worker: that the child is ready, what handlers report and how their jobs are settled, calls,
log records, and that a handler has ended.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from jobline._cancel_reason import CancelReason
from jobline._worker.processes.pickling import dumps, loads

Lease = tuple[int, int]
"""A job's id and delivery."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run a handler: of one job, or of a batch. `jobs` are serialized messages of the protocol."""

    route: int
    jobs: tuple[bytes, ...]
    is_batch: bool


@dataclass(frozen=True, slots=True)
class Cancel:
    """A handler should stop working on a job."""

    lease: Lease
    reason: CancelReason


@dataclass(frozen=True, slots=True)
class Deadline:
    """When all handlers that run will be asked to stop."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """There is nothing more to run."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """End the handler that runs, which does not stop by itself, and then this process."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: its value, or an exception."""

    number: int
    value: Any
    is_error: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The child has all handlers."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The child cannot have its handlers."""

    why: str


@dataclass(frozen=True, slots=True)
class Began:
    """The child has a job in its hands: if it dies from now on, the job has stalled."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The handler has ended, and its jobs are settled. `is_last`: the child ends, too."""

    is_last: bool


@dataclass(frozen=True, slots=True)
class Said:
    """A call of a method of the worker's session, on behalf of a job."""

    lease: Lease
    method: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """A FailItem or a ReleaseItem, serialized."""

    lease: Lease
    is_release: bool
    item: bytes


@dataclass(frozen=True, slots=True)
class Waits:
    """A job waits for children."""

    lease: Lease
    outcome: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call to the server that a handler wants the answer of."""

    number: int
    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Logged:
    """A log record."""

    record: Any


class Pipe:
    """One end of the pipe. Any thread may send; one receives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Any) -> None:
        """Sends a message. Raises OSError if nobody is at the other end."""
        data = dumps(message)
        with self._lock:
            self._connection.send_bytes(data)

    def receive(self) -> Any:
        """Returns the next message. Raises EOFError or OSError if nobody is at the other end."""
        return loads(self._connection.recv_bytes())

    def close(self) -> None:
        """Closes this end."""
        self._connection.close()
