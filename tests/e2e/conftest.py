"""A real server with a clock by hand, on each transport, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jobline import AsyncClient
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server


@pytest.fixture(params=["grpcio", "native"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[RunningServer]:
    """A server on a fresh directory; time stands still but for `server.advance`."""
    async with running_server(transport=request.param, clock=ManualClock()) as running:
        yield running


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[AsyncClient]:
    """A client of that server."""
    async with AsyncClient(server.address) as connected:
        yield connected
