"""`jobline introspect` and `jobline generate` against a real server and worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobline import Worker
from tests.cli.conftest import Jobline


@pytest.fixture
def at_work(served: dict[str, Any]) -> Iterator[str]:
    """A connected worker with a handler; its queue."""
    queue = "introspected"
    worker = Worker(served["grpc"], version="7")

    @worker.handler(queue, "count")
    async def count(payload: list[int]) -> int:
        return len(payload)

    connected, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        task = asyncio.create_task(worker.serve())
        await worker.wait_connected()
        connected.set()
        await task

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert connected.wait(20)
    yield queue
    worker.stop()
    thread.join()
    loop.close()


def test_handlers_are_shown_with_their_types(jobline: Jobline, at_work: str) -> None:
    ran = jobline("introspect", at_work)
    assert ran.code == 0, ran.err
    assert "list[int]" in ran.out
    (shown,) = jobline("introspect", at_work, "--json").lines
    assert (shown["name"], shown["workers"], shown["variants"][0]["version"]) == ("count", 1, "7")


def test_wrappers_are_written_to_a_file_or_the_terminal(
    jobline: Jobline, at_work: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.py"
    assert jobline("generate", at_work, "--output", str(file)).code == 0
    assert "introspected_count: JobType[list[int], int]" in file.read_text()
    ran = jobline("generate", at_work, "--lang", "go")
    assert "type IntrospectedCountPayload = []int64" in ran.out


def test_nothing_is_written_where_no_worker_is_connected(jobline: Jobline) -> None:
    assert jobline("generate", "nowhere").code == 2
    ran = jobline("introspect", "nowhere")
    assert (ran.code, "No worker with handlers" in ran.out + ran.err) == (0, True)
