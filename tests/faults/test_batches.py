"""A batch of a million jobs, whose server is killed again and again while they end in every way."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from jobline.v1 import (
    batch_service_pb2 as pb,
)
from jobline.v1 import (
    batch_service_pb2_grpc,
    job_admin_service_pb2,
    job_admin_service_pb2_grpc,
    job_pb2,
    job_service_pb2,
    job_service_pb2_grpc,
)
from jobline_server.testing import processes
from jobline_server.testing.processes import ServerProcess

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

JOBS = int(os.environ.get("BATCH_JOBS", "1000000"))
QUEUES = [f"q{number}" for number in range(12)]
CALLBACKS = ("success", "complete", "death")
LOT = 10_000
KILLS = 8
# What a pull leased whose reply was lost by a kill comes back after so long.
LEASE_SECONDS = 30


class Calls:
    """Calls of a server that is killed at random; they are repeated."""

    def __init__(self, address: str) -> None:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_reconnect_backoff_ms", 200),
        ]
        channel = aio.insecure_channel(address, options=options)
        self.batches = batch_service_pb2_grpc.BatchServiceStub(channel)
        self.jobs = job_service_pb2_grpc.JobServiceStub(channel)
        self.admin = job_admin_service_pb2_grpc.JobAdminServiceStub(channel)

    async def call(self, function: Any, request: Any) -> Any:
        """Repeats what a kill interrupted."""
        while True:
            try:
                return await function(request)
            except aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.05)


async def pull(
    server: Calls, queue: str, most: int, lease: int = LEASE_SECONDS
) -> list[tuple[int, int]]:
    request = job_service_pb2.PullRequest(
        queues=[job_service_pb2.QueueWeight(queue=queue)],
        max_jobs=most,
        worker="w",
        lease=Duration(seconds=lease),
        accepts_runs=True,
    )
    reply = await server.call(server.jobs.Pull, request)
    pairs = [(job.id, job.delivery) for job in reply.jobs]
    for run in reply.runs:
        pairs += [(run.first_id + at, run.delivery) for at in range(len(run.payloads))]
    return pairs


async def settle(server: Calls, pairs: list[tuple[int, int]], how: str) -> None:
    """Ends jobs in one way; what is asked twice is done once."""
    if how == "ack":
        request = job_service_pb2.AckRequest(
            ids=[one for one, _ in pairs], deliveries=[delivery for _, delivery in pairs]
        )
        await server.call(server.jobs.Ack, request)
    elif how in {"dead", "cancel"}:
        then = getattr(job_service_pb2, f"FAIL_ACTION_{how.upper()}")
        items = [
            job_service_pb2.FailItem(id=one, delivery=delivery, then=then)
            for one, delivery in pairs
        ]
        fail = job_service_pb2.FailRequest(items=items)
        await server.call(server.jobs.Fail, fail)


async def work(server: Calls, drawn: random.Random, *, chaos: bool) -> int:
    """Ends what a queue has in random ways; returns how many jobs it had in hand."""
    seen = 0
    for queue in drawn.sample(QUEUES, len(QUEUES)):
        stalls = chaos and drawn.random() < 0.1
        pairs = await pull(server, queue, 1_000, 1 if stalls else LEASE_SECONDS)
        seen += len(pairs)
        if not pairs or stalls:
            continue
        few = drawn.randrange(1, 40) if chaos else 0
        if few:
            await settle(server, pairs[:few], drawn.choice(["dead", "cancel"]))
        if pairs[few:]:
            await settle(server, pairs[few:], "ack")
    return seen


async def retry_some(server: Calls, batch_id: int) -> None:
    """Puts all dead and cancelled members of one queue back."""
    dead = [job_pb2.JOB_STATE_DEAD, job_pb2.JOB_STATE_CANCELLED]
    where = job_admin_service_pb2.JobFilter(batch_id=batch_id, states=dead)
    request = job_admin_service_pb2.RetryJobsRequest(
        jobs=job_admin_service_pb2.JobSelection(filter=where)
    )
    await server.call(server.admin.RetryJobs, request)


async def callbacks(server: Calls) -> dict[str, int]:
    """How many jobs there are in the queue of each callback: nobody works there."""
    found = {}
    for queue in CALLBACKS:
        where = job_admin_service_pb2.JobFilter(queue=queue)
        request = job_admin_service_pb2.ListJobsRequest(filter=where)
        found[queue] = len((await server.call(server.admin.ListJobs, request)).jobs)
    return found


async def kills(process: ServerProcess, drawn: random.Random) -> None:
    """Kills the server again and again."""
    for _ in range(KILLS):
        await asyncio.sleep(drawn.uniform(0.5, 4))
        await process.kill()
        await process.start()


async def push_all(server: Calls, batch_id: int) -> None:
    options = job_pb2.JobOptions(batch_id=batch_id, max_stalls=1_000)
    for number in range(JOBS // LOT):
        push = job_service_pb2.PushRequest(
            queue=QUEUES[number % len(QUEUES)],
            payloads=[b"x"] * LOT,
            options=options,
            request_id=f"lot {number}",
        )
        await server.call(server.jobs.Push, push)


async def test_each_callback_is_pushed_once_however_often_the_server_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the counts are those of all members."""
    # A start writes again what a million jobs left, with others on the machine.
    monkeypatch.setattr(processes, "READY_SECONDS", 300)
    drawn = random.Random(7)
    process = ServerProcess(tmp_path / "data")
    await process.start()
    server = Calls(process.address)
    create = pb.CreateBatchRequest(
        request_id="one",
        on_success=pb.BatchCallback(queue="success"),
        on_complete=pb.BatchCallback(queue="complete"),
        on_first_death=pb.BatchCallback(queue="death"),
    )
    batch_id = (await server.call(server.batches.CreateBatch, create)).batch.id
    killing = asyncio.create_task(kills(process, drawn))
    await push_all(server, batch_id)
    close, get = pb.CloseBatchRequest(id=batch_id), pb.GetBatchRequest(id=batch_id)
    assert (await server.call(server.batches.CloseBatch, close)).batch.total == JOBS
    while not killing.done():
        await work(server, drawn, chaos=True)
        if drawn.random() < 0.1:
            await retry_some(server, batch_id)
    await killing
    found = await finished(server, drawn, get)
    assert found.total == found.done + found.dead + found.cancelled == JOBS
    while found.done < JOBS:
        await retry_some(server, batch_id)
        found = await finished(server, drawn, get)
    await process.kill()
    await process.start()
    assert await callbacks(server) == {"success": 1, "complete": 1, "death": 1}
    await process.kill()


async def finished(server: Calls, drawn: random.Random, get: pb.GetBatchRequest) -> pb.Batch:
    """The batch once it is complete: whatever is left is acked."""
    while True:
        seen = await work(server, drawn, chaos=False)
        found: pb.Batch = (await server.call(server.batches.GetBatch, get)).batch
        if not seen and found.state == pb.BATCH_STATE_COMPLETE:
            return found
        if not seen:
            await asyncio.sleep(0.2)
