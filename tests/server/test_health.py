"""grpc.health.v1: Check, List, Watch, and what they say while the server stops."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import connect, until
from tests.server.streaming import opened

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
QUEUE = job_service_pb2.QueueWeight(queue="mail")
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def asked(service: str = "") -> Any:
    """A request for a service."""
    return health_pb2.HealthCheckRequest(service=service)


@pytest.mark.parametrize("service", ["", "jobline.v1.JobService", "jobline.v1.QueueService"])
async def test_a_ready_server_is_serving(filled: aio.Channel, service: str) -> None:
    """The server and each of its services."""
    reply = await HealthStub(filled).Check(asked(service))

    assert reply.status == SERVING


def long_poll() -> job_service_pb2.PullRequest:
    """A request that waits for a job."""
    request = job_service_pb2.PullRequest(queues=[QUEUE], max_jobs=1)
    request.wait.FromSeconds(60)
    return request


async def test_a_server_with_as_many_calls_as_it_serves_is_well(transport: str) -> None:
    """Long polls count as calls; a probe that is refused would have the server killed."""
    async with (
        running_server(transport=transport, max_calls=1) as server,
        connect(server.address) as channel,
    ):
        stub = JobServiceStub(channel)
        waiting = asyncio.ensure_future(stub.Pull(long_poll()))
        await until(lambda: server.server.admission.calls == 1)
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Pull(job_service_pb2.PullRequest(queues=[QUEUE], max_jobs=1))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

        assert (await HealthStub(channel).Check(asked())).status == SERVING
        assert (await HealthStub(channel).List(health_pb2.HealthListRequest())).statuses
        waiting.cancel()


async def test_a_service_that_is_not_there_is_not_found(filled: aio.Channel) -> None:
    """As the health protocol requires."""
    with pytest.raises(aio.AioRpcError) as caught:
        await HealthStub(filled).Check(asked("jobline.v1.Nothing"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_all_services_are_listed(filled: aio.Channel) -> None:
    """With one status each."""
    reply = await HealthStub(filled).List(health_pb2.HealthListRequest())

    assert set(reply.statuses) == {
        "",
        "externalscaler.ExternalScaler",
        "jobline.v1.AdminService",
        "jobline.v1.BatchService",
        "jobline.v1.FlowService",
        "jobline.v1.LimiterService",
        "jobline.v1.ScheduleService",
        "jobline.v1.WebhookService",
        "jobline.v1.DeadLetterService",
        "jobline.v1.JobAdminService",
        "jobline.v1.JobService",
        "jobline.v1.QueueService",
    }
    assert {status.status for status in reply.statuses.values()} == {SERVING}


async def test_a_watcher_hears_that_the_server_stops(transport: str) -> None:
    """NOT_SERVING comes while workers may still finish, and the end is UNAVAILABLE.

    (gRPC's own clients drop messages that they have not read when an end other than OK comes: who
    is told both in one packet may hear the end alone.)
    """
    options: dict[str, Any] = {"transport": transport, "drain_seconds": 3_600}
    async with running_server(**options) as server, connect(server.address) as channel:
        watch = HealthStub(channel).Watch(asked("jobline.v1.JobService"))
        assert (await watch.read()).status == SERVING
        worker = await opened(JobServiceStub(channel))

        stopping = asyncio.create_task(server.server.stop())
        assert (await watch.read()).status == NOT_SERVING

        await worker.done_writing()
        await stopping
        with pytest.raises(aio.AioRpcError) as caught:
            await watch.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_watcher_of_an_unknown_service_stays(filled: aio.Channel) -> None:
    """By the protocol, the service may come later."""
    watch = HealthStub(filled).Watch(asked("jobline.v1.Nothing"))

    assert (await watch.read()).status == UNKNOWN
    watch.cancel()


async def test_readiness_follows_health(server: RunningServer) -> None:
    """One truth for gRPC and HTTP."""
    services = server.server.services

    services.health.set_serving(False)
    assert not services.health.serving
    services.health.set_serving(True)
    assert services.health.serving
