"""The pytest plugin: the fixture `jobline`, a server in memory whose clock is moved by hand.

    def test_it_is_tried_again(jobline):
        welcome.push(jobline.client, Mail("busy@b.c"))
        jobline.drain(welcome)
        jobline.advance("1m")
        jobline.drain(welcome)
        jobline.wait_for(queue="mail", state="completed")

pytest loads this module in each run, so it imports nothing of the server before a test asks for it.
See docs/testing.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jobline_server.testing.kit import AsyncJobline, Jobline
    from jobline_server.testing.kit_server import ServerLoop

MARK = "jobline(start=None, **settings): the first time of the clock, and settings of the server"

_OF_ANOTHER_SERVER = (
    "JOBLINE_TOKEN",
    "JOBLINE_TLS",
    "JOBLINE_TLS_CA",
    "JOBLINE_CLIENT_CERTIFICATE",
    "JOBLINE_CLIENT_KEY",
)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line("markers", MARK)


@pytest.fixture(scope="session")
def jobline_loop() -> Iterator[ServerLoop]:
    """The thread that the servers of all tests run in."""
    from jobline_server.testing.kit_server import ServerLoop  # noqa: PLC0415  # as said above

    loop = ServerLoop()
    yield loop
    loop.close()


@pytest.fixture
def jobline(
    request: pytest.FixtureRequest, jobline_loop: ServerLoop, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Jobline | AsyncJobline]:
    """An empty server of this test: `Jobline`, or `AsyncJobline` for a test that is a coroutine.

    `@pytest.mark.jobline(start="2026-03-01T09:00:00Z", max_payload_bytes="1MiB")` sets the first
    time of its clock (default: now), and settings. `Client()`, `AsyncClient()` and `Worker()` of
    the program under test find it by JOBLINE_SERVER; token, TLS and settings that the environment
    has for another server are left out.
    """
    from jobline_server.testing.fixture import kit_of  # noqa: PLC0415  # as said above

    mark = request.node.get_closest_marker("jobline")
    is_async = inspect.iscoroutinefunction(getattr(request.node, "obj", None))
    for name in _OF_ANOTHER_SERVER:
        monkeypatch.delenv(name, raising=False)
    with kit_of(jobline_loop, mark.kwargs if mark else {}, is_async=is_async) as kit:
        monkeypatch.setenv("JOBLINE_SERVER", kit.address)
        yield kit
