"""What docs/python.md shows works: its blocks run in order, as one program, on a real server."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest

from jobline import AsyncClient, JobState, Worker
from jobline_server.testing import running_server
from tests.client.live.either import in_thread

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "localhost:7070"

WAITING = [JobState.READY, JobState.SCHEDULED, JobState.ACTIVE]


async def serve_until_done(worker: Worker, address: str) -> None:
    """Runs a worker until every job that waits has ended."""
    serving = asyncio.create_task(worker.serve())
    async with AsyncClient(address) as client:
        waiting = [job.id async for job in client.jobs.list(state=WAITING)]
        async for end in client.wait(*waiting, timeout=30):
            assert end.ok, end
    worker.stop()
    await serving


def run_page(address: str) -> str:
    """Runs all blocks; a worker's `run` ends when there is nothing left to do."""
    shown = sys.modules["shown"] = ModuleType("shown")  # types are looked up in their module
    shown.__dict__["run_until_done"] = lambda worker: asyncio.run(serve_until_done(worker, address))
    printed = io.StringIO()
    with redirect_stdout(printed):
        for number, block in enumerate(BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
            text = block.replace(SHOWN_ADDRESS, address)
            text = text.replace("worker.run()", "run_until_done(worker)")
            code = compile(text, f"{PAGE.name}, block {number}", "exec", dont_inherit=True)
            exec(code, shown.__dict__)
    return printed.getvalue()


@pytest.mark.timeout(60)
async def test_every_block_works_as_it_stands_there():
    """One program from the first push to the last error."""
    async with running_server() as server:
        printed = (await in_thread(run_page, server.address)).splitlines()
        async with AsyncClient(server.address) as client:
            ended = [job async for job in client.jobs.list(include_payloads=True)]
    assert printed[0].endswith("CREATED FSYNCED")
    assert "{'acme'}" in printed
    assert "COMPLETED {'bytes': 4}" in printed
    assert "QUEUE_NOT_FOUND NOT_FOUND True" in printed
    assert printed[-1].endswith("goes on")
    results = {job.queue: job.result for job in ended}
    assert results["images"] == b'{"pixels":4096}'
    assert results["numbers"] == b"4"
