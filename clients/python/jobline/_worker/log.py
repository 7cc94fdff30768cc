"""What a worker logs: its connection, the attempts that fail, and a plain log for programs that
have not set one up.

Loggers: `jobline.worker` for the worker itself, `jobline.worker.jobs` for its jobs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobline._leased import LeasedJob
from jobline._printable import printable_line
from jobline._reaching import reason_of
from jobline._stream.frames import Received
from jobline._values import below_runners, clean, message_of
from jobline._worker.drain import Stage
from jobline.errors import JoblineError
from jobline.v1 import job_service_pb2 as pb

LIBRARY = logging.getLogger("jobline")
WORKER = logging.getLogger("jobline.worker")
JOBS = logging.getLogger("jobline.worker.jobs")

# Queues that are named when a worker connects; it may have a thousand.
QUEUES_NAMED_MAX = 8

PLAIN_FORMAT = "%(asctime)s %(levelname)s %(message)s"


class ConnectionLog:
    """Logs when a worker connects, loses its connection, and reconnects."""

    def __init__(
        self, target: str, opening: pb.StreamOpen, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._target = target
        self._who = opening.worker.id
        self._queues = _names([entry.queue for entry in opening.queues])
        self._clock = clock
        self._was_connected = False
        self._lost_at: float | None = None

    def opened(self, received: Received) -> None:
        """Logs that the server has replied on a stream."""
        if not self._was_connected:
            WORKER.info("connected to %s as %s; %s", self._target, self._who, self._queues)
        elif self._lost_at is not None:
            away = self._clock() - self._lost_at
            kept = "its leases are kept" if received.resumed else "as a new session"
            WORKER.info("connected again to %s after %.1f s, %s", self._target, away, kept)
        self._was_connected, self._lost_at = True, None

    def ended(self) -> None:
        """Notes that the open stream has ended."""
        if self._lost_at is None:
            self._lost_at = self._clock()

    def broke(self, error: JoblineError, pause: float, *, was_open: bool) -> None:
        """Logs a stream that broke or did not open; the next try follows after `pause` seconds."""
        what = "the connection to %s broke" if was_open else "cannot reach %s"
        why = reason_of(error)
        WORKER.warning(what + ", trying again in %.1f s: %s", self._target, pause, why)


def _names(queues: list[str]) -> str:
    named, more = queues[:QUEUES_NAMED_MAX], len(queues) - QUEUES_NAMED_MAX
    words = f"{'queue' if len(queues) == 1 else 'queues'} {', '.join(named)}"
    return f"{words} and {more} more" if more > 0 else words


def log_unhandled(queue: str, name: str, ready: int) -> None:
    """Logs that jobs wait for a handler that no connected worker has."""
    kind = f"named {name!r}" if name else "without a name"
    one = ready == 1
    WORKER.warning(
        "%d %s %s %s in queue %s, and no worker handles %s",
        ready,
        "job" if one else "jobs",
        kind,
        "waits" if one else "wait",
        printable_line(queue),
        "it" if one else "them",
    )


def stopping(stage: Stage, running: int, seconds_left: float | None) -> None:
    """Logs the beginning and the end of a stop, and how long running handlers have. Handlers that
    never end are logged with their stacks.
    """
    handlers = f"{running:,} {'handler' if running == 1 else 'handlers'}"
    if stage is Stage.STOPPED:
        WORKER.info("stopped")
    elif stage is Stage.FINISHING and running and seconds_left is not None and seconds_left > 0:
        WORKER.info("stopping: %s may finish, for up to %.3g s", handlers, seconds_left)
    elif stage is Stage.FINISHING:
        WORKER.info("stopping")
    elif stage is Stage.CANCELLING and running:
        WORKER.info("stopping: %s told to end now", f"{handlers} {'is' if running == 1 else 'are'}")


def attempt_failed(job: LeasedJob, error: BaseException) -> None:
    """Logs an exception of a handler, with its traceback."""
    why = clean(f"{type(error).__qualname__}: {message_of(error)}")
    # From the handler's own frame on: how it came to be called is the same each time.
    trace = (type(error), error, below_runners(error.__traceback__))
    JOBS.warning("attempt %d of %s failed: %s", job.attempt, kind_of(job), why, exc_info=trace)


def attempt_given_up(job: LeasedJob, why: str) -> None:
    """Logs a failure that a handler reported by itself, without a traceback."""
    JOBS.warning("attempt %d of %s failed: %s", job.attempt, kind_of(job), why)


def job_died(job_id: int, error: str) -> None:
    """Logs that a job went to the dead letters."""
    JOBS.error("job %d is dead: %s", job_id, error or "no error was given")


def kind_of(job: LeasedJob) -> str:
    """Returns how log lines name a job."""
    return f"job {job.id} ({job.queue}/{job.name})" if job.name else f"job {job.id} ({job.queue})"


@contextmanager
def plain_log() -> Iterator[None]:
    """Logs to stderr if the program has not set up logging."""
    if LIBRARY.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(PLAIN_FORMAT))
    level = LIBRARY.level
    LIBRARY.addHandler(handler)
    if level == logging.NOTSET:
        LIBRARY.setLevel(logging.INFO)
    try:
        yield
    finally:
        LIBRARY.removeHandler(handler)
        LIBRARY.setLevel(level)
