"""One session for all, and a server in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobline import Client
from jobline_pipeline.source import register
from jobline_server.testing import ServerProcess


class Server:
    """A server process that blocking tests start again at the same address."""

    def __init__(self, data: Path, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.process = ServerProcess(data, **settings)
        self.do(self.process.start)

    def do(self, step: Callable[[], Any]) -> Any:
        """Does one step of the process: `start`, `kill`, `restart`, `terminate`."""
        done: Future[Any] = asyncio.run_coroutine_threadsafe(step(), self._loop)
        return done.result(60)

    @property
    def address(self) -> str:
        """Returns its address."""
        return self.process.address

    def close(self) -> None:
        """Kills it."""
        self.do(self.process.kill)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture(scope="session")
def spark(spark: SparkSession) -> SparkSession:
    """The session of all tests, which knows the source."""
    register(spark)
    return spark


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests share: each has queues of its own."""
    server = Server(tmp_path_factory.mktemp("server") / "data", shards=4)
    yield server
    server.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may stop."""
    server = Server(tmp_path / "data", shards=4)
    yield server
    server.close()


@pytest.fixture
def client(shared_server: Server) -> Iterator[Client]:
    """A client of the shared server."""
    with Client(shared_server.address) as connected:
        yield connected
