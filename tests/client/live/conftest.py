"""Servers and clients for the client's tests: a tiny one that misbehaves on demand, and the real
one.
"""

from __future__ import annotations

import pytest

from jobline_server.testing import running_server
from tests.client.live.either import connected
from tests.client.live.tiny import tiny_server


@pytest.fixture
async def tiny():
    """A tiny server of this test's own."""
    async with tiny_server() as server:
        yield server


@pytest.fixture(scope="module", params=["grpcio", "native"])
async def server(request):
    """The real server, on both transports."""
    if request.param == "native":
        pytest.importorskip("pygrpc_native")
    async with running_server(transport=request.param) as server:
        yield server


@pytest.fixture(params=["blocking", "async"])
async def either(request, tiny):
    """Both clients, on the tiny server."""
    async with connected(request.param, tiny.address) as client:
        yield client


@pytest.fixture(params=["blocking", "async"])
async def client(request, server):
    """Both clients, on the real server."""
    async with connected(request.param, server.address) as client:
        yield client
