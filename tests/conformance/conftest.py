"""The servers that vectors run against, and the runs, which go on at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from jobline_server.testing import running_server_in_thread
from tests.conformance.runner import Servers, run_vector
from tests.conformance.servers import MAIN, SMALL

# Most of their time they wait.
AT_ONCE = 12


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers of the environment (`MAIN,SMALL`), or two of our own."""
    given = os.environ.get("CONFORMANCE_SERVERS")
    if given:
        yield Servers(*given.split(","))
        return
    with running_server_in_thread(**MAIN) as main, running_server_in_thread(**SMALL) as small:
        yield Servers(main.address, small.address)


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, servers: Servers) -> Iterator[dict[str, Future[None]]]:
    """The run of each vector that was chosen, by name. They run side by side, as no vector knows of
    another: that keeps the whole short, and shows it.
    """
    chosen: dict[str, Any] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and {"runs", "vector"} <= set(item.fixturenames):
            vector: Any = item.callspec.params["vector"]
            chosen[vector["name"]] = vector
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="vector") as pool:
        yield {name: pool.submit(run_vector, vector, servers) for name, vector in chosen.items()}
