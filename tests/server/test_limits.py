"""Backpressure: what is full is refused with a definite code, and nothing of it is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from jobline.v1 import job_pb2, job_service_pb2, queue_pb2, queue_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.testing import running_server
from tests.server.calling import Refusal, refusal_of
from tests.server.conftest import connect
from tests.server.world import make


async def refused(stub: Any, **push: Any) -> Refusal:
    """What a push to queue q is refused with."""
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.Push(make(job_service_pb2.PushRequest, queue="q", **push))
    return refusal_of(caught.value)


async def ready(channel: aio.Channel) -> int:
    """READY jobs of queue q."""
    reply = await QueueServiceStub(channel).GetQueue(queue_service_pb2.GetQueueRequest(queue="q"))
    return reply.queue.counts.ready


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"max_waiting_jobs": 5}, "SERVER_FULL"), ({"max_waiting_bytes": 1_500_000}, "SERVER_FULL")],
)
async def test_a_full_server_refuses_whole_batches(
    transport: str, settings: dict[str, Any], reason: str
) -> None:
    """RESOURCE_EXHAUSTED means nothing was stored, and has a retry delay; pulls go on."""
    payload = bytes(300_000)
    async with (
        running_server(transport=transport, **settings) as server,
        connect(server.address) as channel,
    ):
        stub = JobServiceStub(channel)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[payload] * 5))

        refusal = await refused(stub, payloads=[payload] * 3)

        assert (refusal.code, refusal.reason) == ("RESOURCE_EXHAUSTED", reason)
        assert {"QuotaFailure", "RetryInfo"} <= set(refusal.details)
        assert await ready(channel) == 5
        pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], max_jobs=5)
        reply = await stub.Pull(pull)
        ids, deliveries = zip(*((job.id, job.delivery) for job in reply.jobs), strict=True)
        await stub.Ack(job_service_pb2.AckRequest(ids=ids, deliveries=deliveries))
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[payload] * 3))


async def test_clients_push_no_faster_than_they_may(transport: str) -> None:
    """Nothing of a batch over the rate is stored; a large one waits for all that may be in store,
    and consumers go on.
    """
    async with (
        running_server(transport=transport, client_rate=1, client_burst=5) as server,
        connect(server.address) as channel,
        connect(server.address) as other,
    ):
        stub = JobServiceStub(channel)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"] * 5))

        refusal = await refused(stub, payloads=[b"x"] * 3)

        assert (refusal.code, refusal.reason) == ("RESOURCE_EXHAUSTED", "CLIENT_RATE")
        assert {"QuotaFailure", "RetryInfo"} <= set(refusal.details)
        assert (await refused(JobServiceStub(other), payloads=[b"x"] * 2)).reason == "CLIENT_RATE"
        assert await ready(channel) == 5
        pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], max_jobs=5)
        assert len((await stub.Pull(pull)).jobs) == 5


async def test_a_unix_socket_is_one_client(transport: str, tmp_path: Path) -> None:
    """All that come by it together, and nobody who comes by the port."""
    path, five = (
        tmp_path / "jobline.sock",
        job_service_pb2.PushRequest(queue="q", payloads=[b""] * 5),
    )
    settings: dict[str, Any] = {"client_rate": 1, "client_burst": 5, "unix_socket": path}
    async with (
        running_server(transport=transport, **settings) as server,
        connect(f"unix:{path}") as channel,
        connect(f"unix:{path}") as other,
        connect(server.address) as by_port,
    ):
        await JobServiceStub(channel).Push(five)

        assert (await refused(JobServiceStub(other), payloads=[b"x"])).reason == "CLIENT_RATE"
        await JobServiceStub(by_port).Push(five)


async def test_workers_limit_a_queue_for_no_longer_than_the_setting_says(transport: str) -> None:
    """A longer time counts as that; the job is released all the same."""
    options: dict[str, Any] = {"transport": transport, "worker_limit_seconds": 60}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
        pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}])
        (job,) = (await stub.Pull(pull)).jobs
        far = datetime.now(UTC) + timedelta(days=300)
        limited = job_service_pb2.RELEASE_REASON_LIMITED
        item = {"id": job.id, "delivery": job.delivery, "why": limited, "until": far}
        released = await stub.Release(make(job_service_pb2.ReleaseRequest, items=[item]))
        assert not released.exceptions
        get = queue_service_pb2.GetQueueRequest(queue="q")
        queue = (await QueueServiceStub(channel).GetQueue(get)).queue
        lasts = queue.limited_until.ToDatetime(UTC) - datetime.now(UTC)
        assert timedelta(seconds=30) < lasts <= timedelta(seconds=60)


async def test_a_full_queue_refuses_whole_batches(channel: aio.Channel) -> None:
    """By the queue's own setting; other queues go on."""
    stub = JobServiceStub(channel)
    update = queue_service_pb2.UpdateQueueRequest(
        queue="q", settings=queue_pb2.QueueSettings(max_waiting=3)
    )
    await QueueServiceStub(channel).UpdateQueue(update)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"] * 2))

    refusal = await refused(stub, payloads=[b"x"] * 2)

    assert (refusal.code, refusal.reason) == ("RESOURCE_EXHAUSTED", "QUEUE_FULL")
    assert await ready(channel) == 2
    await stub.Push(job_service_pb2.PushRequest(queue="other", payloads=[b"x"] * 9))


async def test_pushes_with_keys_are_refused_when_no_more_keys_are_kept(transport: str) -> None:
    """A key is never evicted before its window; plain pushes go on."""
    options: dict[str, Any] = {"transport": transport, "max_keys": 2}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        keyed = [{"job_key": "a"}, {"job_key": "b"}]
        await stub.Push(make(job_service_pb2.PushRequest, queue="q", jobs=keyed))

        refusal = await refused(stub, jobs=[{"job_key": "c"}])

        assert (refusal.code, refusal.reason) == ("RESOURCE_EXHAUSTED", "KEYS_FULL")
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
        again = await stub.Push(make(job_service_pb2.PushRequest, queue="q", jobs=keyed))
        outcomes = [exception.outcome for exception in again.exceptions]
        assert outcomes == [job_service_pb2.PUSH_OUTCOME_DUPLICATE] * 2


async def test_the_payload_limit_is_a_setting(transport: str) -> None:
    """And the transport's limit follows it."""
    options: dict[str, Any] = {"transport": transport, "max_payload_bytes": "1KiB"}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[bytes(1_024)]))

        refusal = await refused(stub, payloads=[b"x", bytes(1_025)])

        assert (refusal.reason, refusal.field) == ("TOO_LARGE", "payloads[1]")


@pytest.mark.parametrize("level", ["buffered", "memory", "fsynced"])
async def test_the_default_ack_level_is_a_setting(transport: str, level: str) -> None:
    """The reply has the level that was reached."""
    options: dict[str, Any] = {"transport": transport, "default_ack_level": level}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)

        reply = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))

        assert job_pb2.AckLevel.Name(reply.ack_level) == f"ACK_LEVEL_{level.upper()}"


async def test_open_waits_hold_up_no_push_of_their_connection(channel: aio.Channel) -> None:
    """A client has as many as it likes; a connection must not make its calls stand in line."""
    stub = JobServiceStub(channel)
    pushed = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]), timeout=10)
    wait = make(job_service_pb2.WaitRequest, ids=[pushed.first_id], timeout=timedelta(minutes=1))
    waits = [stub.Wait(wait) for _ in range(1_500)]
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]), timeout=10)
    assert await ready(channel) == 2
    assert not any(wait.done() for wait in waits)
    for each in waits:
        each.cancel()
