"""`jobline dev` as the test suites of other languages start it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from jobline import AsyncClient, JobState
from jobline.v1 import test_service_pb2 as pb
from jobline.v1 import test_service_pb2_grpc as stubs

ENDS_WITHIN = 20
FOR_TESTS = ("--memory", "--clock=manual", "--port", "0", "--json")


@asynccontextmanager
async def dev(*flags: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """Runs the command; yields its process and its ready line."""
    environment = {name: value for name, value in os.environ.items() if name != "JOBLINE_SERVER"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jobline.cli", "dev", *flags),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
        yield process, json.loads(line) if line else {}
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(ENDS_WITHIN):
        return await process.wait()


async def test_one_line_says_where_it_is_and_its_clock_is_moved() -> None:
    async with dev(*FOR_TESTS) as (process, ready), AsyncClient(ready["grpc"]) as client:
        assert (ready["clock"], ready["pid"], ready["http"]) == ("manual", process.pid, "")
        stub: Any = stubs.TestServiceStub(client.channel)
        pushed = await client.push("mail", b"", delay="1h")
        await stub.Advance(pb.AdvanceRequest(duration=Duration(seconds=3_600)))
        assert (await client.jobs.get(pushed.id)).state is JobState.READY
        await stub.Reset(pb.ResetRequest())
        assert [job async for job in client.jobs.list()] == []
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0


async def test_it_ends_with_the_program_that_started_it() -> None:
    async with dev(*FOR_TESTS, "--until-eof") as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert await ended(process) == 0


async def test_its_clock_starts_where_it_is_told() -> None:
    flags = (*FOR_TESTS, "--clock-start", "2026-03-01T10:00:00+01:00")
    async with dev(*flags) as (_, ready), AsyncClient(ready["grpc"]) as client:
        stub: Any = stubs.TestServiceStub(client.channel)
        response = await stub.Advance(pb.AdvanceRequest())
        assert response.now.ToJsonString() == "2026-03-01T09:00:00Z"


async def test_a_directory_is_not_emptied(tmp_path: Path) -> None:
    """What somebody wants kept is kept."""
    flags = ("--clock=manual", "--port", "0", "--json", "--data", str(tmp_path / "data"))
    async with dev(*flags) as (_, ready), AsyncClient(ready["grpc"]) as client:
        await client.push("mail", b"")
        stub: Any = stubs.TestServiceStub(client.channel)
        with pytest.raises(Exception, match="keeps a directory"):
            await stub.Reset(pb.ResetRequest())
        assert len([job async for job in client.jobs.list()]) == 1
