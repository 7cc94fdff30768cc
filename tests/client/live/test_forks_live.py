"""A client that was made before a fork: each child is a producer of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from jobline import AsyncClient
from tests.client.live.forking import PUSHES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

JOBS_A_CHILD = PUSHES * 5


async def forked(address: str, how: str) -> list[dict[str, Any]]:
    """What the children and their parent say."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.client.live.forking", address, how),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # The benchmarks switch gRPC's fork support off where they are imported.
        env={name: value for name, value in os.environ.items() if not name.startswith("GRPC_")},
    )
    out, error = await program.communicate()
    assert program.returncode == 0, error.decode()
    return [json.loads(line) for line in out.decode().splitlines()]


@pytest.mark.parametrize("how", ["idle", "used", "held", "async"])
async def test_each_child_of_a_fork_is_a_producer_of_its_own(server, how):
    """Trial A1: two children push equal payloads with a client that their parent had made, whatever
    that had done with it: all of them are stored, and neither gets the other's leases.
    """
    async with AsyncClient(server.address) as client:
        await client.push_payloads("given", [b"1", b"2"])
        said = await forked(server.address, how)
        children = said[:2]
        ids = [job_id for child in children for job_id in child["ids"]]
        assert len(ids) == len(set(ids)) == 2 * JOBS_A_CHILD
        jobs = [await client.jobs.get(job_id) for job_id in ids]
        traces = [(job.options.headers or {}).get("by", "") for job in jobs]
        assert len(set(traces) - {""}) == 2 * PUSHES
        assert all(job.job_key in {"", by} for job, by in zip(jobs, traces, strict=True))
        assert len({child["pulled"] for child in children}) == 2
        if how != "async":
            assert (await client.jobs.get(said[2]["ids"][0])).queue == "parent"


@pytest.mark.parametrize("how", ["async-used", "async-loop"])
async def test_a_child_of_a_connected_async_client_is_refused(server, how):
    """Trial A1: gRPC's asyncio side does not survive a fork, so a child is told so and does not
    hang, in whichever loop; its parent goes on.
    """
    child, parent = await forked(server.address, how)
    assert child["error"] == "FailedPrecondition"
    assert "connect after the fork" in child["message"]
    assert len(parent["ids"]) == 1


async def test_a_worker_in_a_child_of_a_running_worker_works_or_is_refused(server):
    """Trial A1: it does not hang, and takes nothing of its parent's, which goes on."""
    async with AsyncClient(server.address) as client:
        await client.push("work", b"before")
        await client.push("child", b"its own")
        child, parent = await forked(server.address, "worker")
        assert child == {"done": 1}
        assert parent == {"done": 2, "after": "COMPLETED"}
