"""Servers for the tests of this folder: real ones, over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from grpc import aio

from jobline_server.testing import RunningServer, running_server
from tests.server import world

TRANSPORTS = ("grpcio", "native")


@pytest.fixture(scope="session", params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    """Every server test runs on both."""
    return str(request.param)


@pytest.fixture(scope="session")
async def filled_server(transport: str) -> AsyncIterator[RunningServer]:
    """A server with `world` in it, shared by tests that change nothing."""
    async with running_server(transport=transport) as server:
        async with connect(server.address) as channel:
            await world.fill(channel)
        yield server


@pytest.fixture(scope="session")
async def filled(filled_server: RunningServer) -> AsyncIterator[aio.Channel]:
    """A channel to it."""
    async with connect(filled_server.address) as channel:
        yield channel


@pytest.fixture
async def server(transport: str) -> AsyncIterator[RunningServer]:
    """A server of the test's own."""
    async with running_server(transport=transport) as running:
        yield running


@pytest.fixture
async def channel(server: RunningServer) -> AsyncIterator[aio.Channel]:
    """A channel to it."""
    async with connect(server.address) as connected:
        yield connected


def connect(address: str) -> aio.Channel:
    """A channel that takes and sends messages of any size, and shares no connection."""
    options: list[tuple[str, int]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.aio.insecure_channel(address, options=options)


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until a condition holds that has no signal."""
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110  # a counter has no event
            await asyncio.sleep(0)
