"""Flows are pushed to a server that is killed again and again: each is whole, or not there."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import grpc
import pytest
from grpc import aio

from jobline.v1 import (
    flow_service_pb2 as pb,
)
from jobline.v1 import (
    flow_service_pb2_grpc,
    job_admin_service_pb2,
    job_admin_service_pb2_grpc,
    job_pb2,
)
from jobline_server.testing.processes import ServerProcess

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

QUEUES = [f"q{number}" for number in range(12)]
KILLS = 8
JOBS = 300
PUSHERS = 4


def a_flow(name: str) -> pb.PushFlowRequest:
    """A root with ten parents, whose children are in queues of all shards."""
    jobs = [pb.FlowJob(queue="root", job=job_pb2.NewJob(text=name), children=range(1, 11))]
    for at in range(10):
        children = range(11 + at, JOBS, 10)
        own = job_pb2.NewJob(text=name, options=job_pb2.JobOptions(priority=at))
        jobs.append(pb.FlowJob(queue=QUEUES[at], job=own, children=children))
    jobs += [
        pb.FlowJob(queue=QUEUES[at % 12], job=job_pb2.NewJob(text=name)) for at in range(11, JOBS)
    ]
    return pb.PushFlowRequest(jobs=jobs, request_id=name)


class Calls:
    """Calls of a server that is killed at random."""

    def __init__(self, address: str) -> None:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_reconnect_backoff_ms", 200),
        ]
        channel = aio.insecure_channel(address, options=options)
        self.flows = flow_service_pb2_grpc.FlowServiceStub(channel)
        self.admin = job_admin_service_pb2_grpc.JobAdminServiceStub(channel)

    async def push(self, name: str) -> list[int] | None:
        """The ids of a flow; None if a kill came before the answer."""
        try:
            return list((await self.flows.PushFlow(a_flow(name))).ids)
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            return None

    async def all_jobs(self) -> dict[str, set[int]]:
        """All jobs by the name of their flow, which is their payload."""
        found: dict[str, set[int]] = {}
        token = ""
        while True:
            request = job_admin_service_pb2.ListJobsRequest(
                page_size=1_000, page_token=token, include_payloads=True
            )
            page = await self.admin.ListJobs(request)
            for job in page.jobs:
                found.setdefault(job.payload.decode(), set()).add(job.id)
            token = page.next_page_token
            if not token:
                return found


async def test_flows_are_whole_however_often_the_server_is_killed(tmp_path: Path) -> None:
    """G26: what was answered is there, and what was not is there whole or not at all."""
    drawn = random.Random(7)
    process = ServerProcess(tmp_path / "data")
    await process.start()
    server = Calls(process.address)
    answered: dict[str, list[int]] = {}
    unknown: set[str] = set()
    is_over = asyncio.Event()

    async def pushes(number: int) -> None:
        count = 0
        while not is_over.is_set():
            count += 1
            ids = await server.push(f"{number}-{count}")
            if ids is None:
                unknown.add(f"{number}-{count}")
                await asyncio.sleep(0.05)
            else:
                answered[f"{number}-{count}"] = ids

    pushing = [asyncio.create_task(pushes(number)) for number in range(PUSHERS)]
    for _ in range(KILLS):
        await asyncio.sleep(drawn.uniform(0.2, 1.0))
        await process.kill()
        await process.start()
    is_over.set()
    await asyncio.gather(*pushing)
    await process.kill()
    await process.start()
    assert answered
    found = await server.all_jobs()
    for name, ids in answered.items():
        assert found.pop(name) == set(ids)
    assert found.keys() <= unknown
    assert {len(ids) for ids in found.values()} <= {JOBS}
    # Who repeats what got no answer has each flow once.
    for name, whole in found.items():
        assert set(await server.push(name) or ()) == whole
    await process.kill()
