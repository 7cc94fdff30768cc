"""What the fixture `jobline` does; see `jobline_server.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobline._times import moment_of
from jobline_server.testing.kit import AsyncJobline, Jobline
from jobline_server.testing.kit_server import ServerLoop, kit_server


@contextmanager
def kit_of(
    loop: ServerLoop, options: Mapping[str, Any], *, is_async: bool
) -> Iterator[Jobline | AsyncJobline]:
    """Yields the kit of a test. `options`: `start`, the first time of the clock, and settings."""
    settings = dict(options)
    start = settings.pop("start", None)
    start_ms = None if start is None else round(moment_of(start).timestamp() * 1_000)
    with kit_server(loop, start_ms, **settings) as server:
        kit = AsyncJobline(server) if is_async else Jobline(server)
        try:
            yield kit
        finally:
            kit.close()
