"""What docs/python.md shows works: its blocks run in order, as one program, on a real server."""

from __future__ import annotations

import asyncio
import io
import os
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
ALONE = "<!-- a program of its own -->\n"
BLOCK = re.compile(rf"(?<!{ALONE})^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(rf"{ALONE}```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("method", ["fork", "spawn"])
async def test_the_prefork_program_works_in_its_own_process(method: str, tmp_path: Path):
    """Trial A1: each child pushes with the client of the parent, or, where nothing forks, with the
    one that it makes where it imports the module.
    """
    (text,) = PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    path = tmp_path / "prefork.py"
    async with running_server() as server, AsyncClient(server.address) as client:
        text = text.replace(SHOWN_ADDRESS, server.address).replace('"fork"', f'"{method}"')
        path.write_text(text, encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, path),
            stdout=asyncio.subprocess.PIPE,
            # The benchmarks switch gRPC's fork support off where they are imported.
            env={name: value for name, value in os.environ.items() if not name.startswith("GRPC_")},
        )
        out, _ = await process.communicate()
        assert out.split() == [b"CREATED"] * 2
        assert (await client.queues.get("prefork")).pushed_total == 3
