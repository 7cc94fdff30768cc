"""Servers for the tests of this folder: real ones, over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest
import trustme
from grpc import aio

from jobline_server.testing import RunningServer, running_server
from tests.server import world as contents
from tests.server.access import api_key, auth_file, channel_of, of_verbs, role
from tests.server.authorities import HOST, Files
from tests.server.two_queues import World

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
            await contents.fill(channel)
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


ALL = ["push", "work", "read", "read_payload", "manage"]
TWO_QUEUES = (
    role("ours", (["ours"], ALL))
    + role("looks", (["ours", "shown"], ["read"]))
    + role("looks-all", (["*"], ["read"]), (["ours", "shown"], ["read_payload"]))
    + role("root", (["*"], [*ALL, "admin"]))
    + "".join(api_key(name, name) for name in ("ours", "looks", "looks-all", "root"))
)


@pytest.fixture(scope="session")
async def world(transport: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A guarded server, and channels of its callers."""
    path = auth_file(tmp_path_factory.mktemp("auth"), TWO_QUEUES)
    async with running_server(transport=transport, auth=path) as server:
        address = server.address
        async with (
            channel_of(address, "root") as root,
            channel_of(address, "ours") as ours,
            channel_of(address, "looks") as looks,
            channel_of(address, "looks-all") as looks_all,
        ):
            yield World(server, root, ours, looks, looks_all)


@pytest.fixture(scope="module")
async def guarded(
    transport: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningServer]:
    """A server with a key for each verb."""
    path = auth_file(tmp_path_factory.mktemp("auth"), of_verbs())
    async with running_server(transport=transport, auth=path) as server:
        yield server


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Files:
    found = Files(tmp_path)
    found.write(authority.issue_cert(HOST))
    authority.cert_pem.write_to_path(found.client_ca)
    return found


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
