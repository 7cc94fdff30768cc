"""A database of each kind, and a real Jobline server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobline import Client
from jobline_server.testing import RunningServer, running_server
from tests.client.outbox.databases import Database, cluster, created


@pytest.fixture(scope="session")
def cluster_target() -> Iterator[str]:
    """One PostgreSQL for all tests of a process."""
    with cluster() as target:
        yield target


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A new database with an outbox, a fence, and a table of effects."""
    return created(request.param, request, tmp_path)


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RunningServer]:
    """A server for the tests of a module."""
    async with running_server() as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    """A blocking client, as a relay has it."""
    with Client(server.address) as connected:
        yield connected
