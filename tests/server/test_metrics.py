"""The metrics as a whole: what a job does is counted, and promtool finds nothing wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server import world
from tests.server.conftest import connect
from tests.server.test_pages import fetch, samples

ROOT = Path(__file__).parents[2]
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=str(ROOT / ".tools/bin"))


async def test_what_becomes_of_jobs_is_counted(server: RunningServer, channel: aio.Channel) -> None:
    """Each hand-out, each end, and what was given back."""
    stub = JobServiceStub(channel)
    await stub.Push(pb.PushRequest(queue="mail", payloads=[b"x"] * 3))
    pull = pb.PullRequest(queues=[pb.QueueWeight(queue="mail")], max_jobs=3, worker="w")
    first, second, third = (await stub.Pull(pull)).jobs
    await stub.Ack(pb.AckRequest(items=[pb.AckItem(id=first.id, delivery=first.delivery)]))
    dead = pb.FailItem(id=second.id, delivery=second.delivery, then=pb.FAIL_ACTION_DEAD)
    await stub.Fail(pb.FailRequest(items=[dead]))
    back = pb.ReleaseItem(id=third.id, delivery=third.delivery)
    await stub.Release(pb.ReleaseRequest(items=[back]))
    await stub.Pull(pull)

    found = await samples(server)

    assert found["jobline_deliveries_total", frozenset()] == 4
    assert found["jobline_jobs_ended_total", frozenset({"completed"})] == 1
    assert found["jobline_jobs_ended_total", frozenset({"dead"})] == 1
    assert found["jobline_jobs_ended_total", frozenset({"expired"})] == 0
    assert found["jobline_jobs_released_total", frozenset()] == 1
    assert found["jobline_leases_lost_total", frozenset({"stalled"})] == 0
    assert found["jobline_commit_bytes_sum", frozenset()] > 3


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: scripts/promtool.sh brings it")
async def test_promtool_finds_nothing_wrong(transport: str, tmp_path: Path) -> None:
    """Names, units, types and help of all metrics, those of the history among them."""
    async with running_server(transport=transport, history=str(tmp_path)) as server:
        async with connect(server.address) as channel:
            await world.fill(channel)
        page = (await fetch(server, "/metrics")).text

    assert "jobline_history_lag_seconds" in page
    checked = subprocess.run(  # noqa: ASYNC221  # nothing else runs
        [str(PROMTOOL), "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
