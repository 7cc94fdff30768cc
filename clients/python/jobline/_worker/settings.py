"""The settings of a worker, checked where it is made and not only when it runs."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jobline._arguments import (
    message_of,
    middleware_given,
    number_given,
    refuse,
    span_given,
    text_given,
    value_given,
)
from jobline._times import Seconds
from jobline._version import __version__
from jobline._worker.failure_pause import FailurePauseSettings
from jobline._worker.middleware import Middleware
from jobline._worker.stream import Address
from jobline._worker.window import WINDOW_MAX
from jobline.codec import Codec
from jobline.v1 import job_service_pb2 as pb

# The protocol's limits; `WINDOW_MAX` is another one.
WINDOW_BYTES_MAX = 1 << 40
LEASE_SECONDS_MIN = 1
# Each is a Python of its own, some 40 MB.
PROCESSES_MAX = 1_000
LEASE_SECONDS_MAX = 43_200
# More failures than that in a row, or a longer pause, is a slip.
PAUSE_FAILURES_MAX = 1_000_000
PAUSE_SECONDS_MAX = 86_400

# As the server checks versions.
_VERSION = re.compile("[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker. `window` None: it follows the work. Times are in seconds. `health`:
    where the health port listens, if it does. `failure_pause`: when it pauses, if ever.
    """

    address: Address
    concurrency: int
    threads: int
    processes: int
    window: int | None
    window_bytes: int
    cancel_grace: float
    middleware: Sequence[Middleware]
    health: tuple[str, int] | None = None
    codec: Codec | None = None
    failure_pause: FailurePauseSettings | None = None

    @property
    def plain_runners(self) -> int:
        """How many plain handlers run at once."""
        return self.processes or self.threads


def settings_given(  # noqa: PLR0913  # as many as a worker has
    address: Address,
    *,
    concurrency: int,
    threads: int | None,
    processes: int,
    window: int | None,
    window_bytes: int,
    cancel_grace: Seconds,
    middleware: Iterable[Middleware],
    health: tuple[str, int | None],
    codec: Codec | None,
    failure_pause: tuple[int | None, Seconds],
) -> Settings:
    """Returns the settings of a worker. Raises InvalidArgument for values out of bounds."""
    concurrency = number_given("concurrency", concurrency, minimum=1)
    if window is not None:
        window = number_given("window", window, minimum=0, maximum=WINDOW_MAX)
    return Settings(
        address=address,
        concurrency=concurrency,
        threads=concurrency if threads is None else number_given("threads", threads, minimum=1),
        processes=number_given("processes", processes, minimum=0, maximum=PROCESSES_MAX),
        window=window,
        window_bytes=number_given(
            "window_bytes", window_bytes, minimum=0, maximum=WINDOW_BYTES_MAX
        ),
        cancel_grace=span_given("cancel_grace", cancel_grace),
        middleware=middleware_given(middleware, Middleware),
        health=_health_given(*health),
        codec=None if codec is None else value_given("codec", codec, Codec),
        failure_pause=_failure_pause_given(*failure_pause),
    )


def _health_given(host: str, port: int | None) -> tuple[str, int] | None:
    if port is None:
        return None
    return text_given("health_host", host), number_given(
        "health_port", port, minimum=0, maximum=65_535
    )


def _failure_pause_given(failures: int | None, pause: Seconds) -> FailurePauseSettings | None:
    seconds = span_given("failure_pause", pause, maximum=PAUSE_SECONDS_MAX)
    if failures is None:
        return None
    failures = number_given("pause_after_failures", failures, minimum=1, maximum=PAUSE_FAILURES_MAX)
    return FailurePauseSettings(failures, seconds)


def lease_given(lease: Seconds | None) -> float | None:
    """Returns the lease that overrides the jobs' own, in seconds, or None."""
    if lease is None:
        return None
    return span_given("lease", lease, minimum=LEASE_SECONDS_MIN, maximum=LEASE_SECONDS_MAX)


def lifespan_given(lifespan: T) -> T:
    """Returns the lifespan function. Raises InvalidArgument for what cannot be called."""
    if not callable(lifespan):
        refuse(
            "lifespan",
            f"must be a function that makes an async context manager, not {lifespan!r}: "
            "write its name, without ()",
        )
    return lifespan


def version_given(version: str) -> str:
    """Returns the version of the program, "" for none. Raises InvalidArgument for what no
    `min_worker_version` of a job can be compared with.
    """
    if version and not _VERSION.fullmatch(text_given("version", version)):
        why = "must be 1 to 64 of A-Z a-z 0-9 . + _ -, the first a letter or digit"
        refuse("version", f"{why}, as 1.10.2 or 2026-01-31, not {version!r}")
    return version


def describe(
    worker_id: str | None, version: str, labels: Mapping[str, str] | None
) -> pb.WorkerDescription:
    """Returns what operators see of a worker in this process."""
    host, pid = socket.gethostname(), os.getpid()
    return message_of(
        pb.WorkerDescription,
        id=worker_id or f"{host}:{pid}",
        host=host,
        pid=pid,
        version=version_given(version),
        labels=labels or {},
        language=f"python/{__version__}",
    )
