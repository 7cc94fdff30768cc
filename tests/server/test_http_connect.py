"""Connect's own client, in Node, calls the server: tests/connect/calls.mjs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobline_server.testing import RunningServer

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "connect"
DESCRIPTORS = ROOT / "service" / "jobline_server" / "rpc" / "descriptors.binpb"
SECONDS = 50.0


async def run(*command: str) -> str:
    """What a command prints; its error output is in the failure."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=PROGRAM, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(SECONDS):
        said, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()
    return said.decode()


@pytest.fixture(scope="module")
async def node() -> str:
    """Node with the client's packages, as package-lock.json names them (`make connect-client`)."""
    found = shutil.which("node")
    is_ready = found is not None and (PROGRAM / "node_modules" / ".package-lock.json").exists()
    if found is None or not is_ready:
        why = "needs Node 20 or newer, npm and `make connect-client`"
        if os.environ.get("CONNECT_CLIENT") == "required":
            pytest.fail(why)
        pytest.skip(why)
    return found


async def test_connects_own_client_pushes_pulls_acks_and_reads_errors(
    server: RunningServer, node: str
) -> None:
    seen = json.loads(await run(node, "calls.mjs", f"http://{server.http}", str(DESCRIPTORS)))

    for found in (seen["json"], seen["binary"]):
        check(server, found)


def check(server: RunningServer, found: dict[str, Any]) -> None:
    assert found["leased"] == found["id"]
    assert found["payload"] == "hello"
    assert (found["exceptions"], found["again"]) == (0, 1)  # the second one says ALREADY_DONE
    assert found["invalid"]["code"] == "InvalidArgument"
    assert found["invalid"]["reason"] == "INVALID_FIELD"
    assert found["invalid"]["message"].startswith("queue: ")
    assert found["missing"]["code"] == "NotFound"
    assert found["missing"]["reason"] == "QUEUE_NOT_FOUND"
    assert found["late"]["code"] == "DeadlineExceeded"
    assert found["stream"]["code"] == "Unimplemented"
    assert server.address in found["stream"]["message"]
