"""A shard that another process took: clients are refused there, and served everywhere else."""

from __future__ import annotations

from typing import Any, cast
from zlib import crc32

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer
from tests.server.calling import refusal_of
from tests.server.streaming import next_with, opened


def queue_in(server: RunningServer, shard: int) -> str:
    total = server.server.runtime.core.slots.total
    names = (f"queue-{n}" for n in range(1_000))
    return next(name for name in names if crc32(name.encode()) % total == shard)


async def fence(server: RunningServer, shard: int) -> None:
    """The shard's row is under another epoch now."""

    def take(connection: Any) -> None:
        connection.execute("UPDATE shard SET epoch = epoch + 1 WHERE shard = ?", (shard,))

    await cast(Any, server.server.runtime.core.store).database.write(take, 0)


async def test_calls_for_a_lost_shard_are_unavailable_and_a_stream_goes_on_with_the_other(
    server: RunningServer, channel: aio.Channel
) -> None:
    """The push that finds it out is refused like those after it; leases there are revoked."""
    stub = JobServiceStub(channel)
    lost, other = queue_in(server, 0), queue_in(server, 1)
    stream = await opened(stub, open={"queues": [{"queue": lost}, {"queue": other}]})
    for queue in (lost, other):
        await stub.Push(job_service_pb2.PushRequest(queue=queue, payloads=[b"x"]))
    leased: dict[str, Any] = {}
    while len(leased) < 2:
        frame = await next_with(stream, "jobs")
        leased.update({job.queue: job for job in frame.jobs})

    await fence(server, 0)
    for _ in range(2):
        with pytest.raises(aio.AioRpcError) as refused:
            await stub.Push(job_service_pb2.PushRequest(queue=lost, payloads=[b"y"]))
        refusal = refusal_of(refused.value)
        assert (refusal.code, refusal.reason) == ("UNAVAILABLE", "SHARD_UNAVAILABLE")
        assert "RetryInfo" in refusal.details

    (revoked,) = (await next_with(stream, "revokes")).revokes
    assert (revoked.id, revoked.delivery) == (leased[lost].id, leased[lost].delivery)
    await stub.Push(job_service_pb2.PushRequest(queue=other, payloads=[b"z"]))
    (job,) = (await next_with(stream, "jobs")).jobs
    assert (job.queue, job.payload) == (other, b"z")
    ack = job_service_pb2.AckRequest(ids=[job.id], deliveries=[job.delivery])
    assert not (await stub.Ack(ack)).exceptions
    await stream.done_writing()
