"""TestService over gRPC: what it refuses, what it says where nothing comes, and a reset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from jobline import AsyncClient, JobState
from jobline.v1 import job_pb2
from jobline.v1 import test_service_pb2 as pb
from jobline.v1 import test_service_pb2_grpc as stubs
from jobline_server.dev.servers import ManualServer
from tests.server.calling import refusal_of
from tests.server.manual import START_MS, at_work, manual_server, minutes

SOON = Duration(nanos=20_000_000)


@pytest.fixture
async def server() -> AsyncIterator[ManualServer]:
    async with manual_server() as running:
        yield running


@pytest.fixture
async def client(server: ManualServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.addresses[0]) as connected:
        yield connected


@pytest.fixture
async def tests(client: AsyncClient) -> Any:
    return stubs.TestServiceStub(client.channel)


async def refused(call: Any) -> tuple[str, str]:
    """Reason and message of a refusal."""
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return refusal_of(caught.value).reason, caught.value.details() or ""


async def done(payload: object) -> str:
    return "done"


async def test_moves_by_a_time_and_to_a_moment(tests: Any) -> None:
    response = await tests.Advance(pb.AdvanceRequest(duration=Duration(seconds=90)))
    assert response.now.ToMilliseconds() == START_MS + 90_000
    until = Timestamp(seconds=START_MS // 1_000 + 120)
    response = await tests.Advance(pb.AdvanceRequest(until=until))
    assert response.now.ToMilliseconds() == START_MS + 120_000
    assert (await tests.Advance(pb.AdvanceRequest())).now == until


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (pb.AdvanceRequest(duration=Duration(seconds=-1)), "duration: must not be negative"),
        (pb.AdvanceRequest(duration=Duration(seconds=3_661 * 86_400)), "duration: must be"),
        (pb.AdvanceRequest(until=Timestamp(seconds=1)), "until: is over"),
        (pb.AdvanceRequest(until=Timestamp(seconds=START_MS // 1_000 + 3_661 * 86_400)), "until"),
        (pb.AdvanceRequest(work_timeout=Duration(seconds=601)), "work_timeout: must be"),
    ],
)
async def test_a_move_that_makes_no_sense(
    tests: Any, request_: pb.AdvanceRequest, said: str
) -> None:
    reason, message = await refused(tests.Advance(request_))
    assert reason == "INVALID_FIELD"
    assert said in message


async def test_no_clock_goes_beyond_the_times_of_the_protocol(tests: Any) -> None:
    await tests.Reset(pb.ResetRequest(start=Timestamp(seconds=7_258_118_399)))
    reason, message = await refused(tests.Advance(pb.AdvanceRequest(duration=Duration(seconds=1))))
    assert (reason, message) == ("INVALID_FIELD", "duration: must end before 2200")
    reason, _ = await refused(tests.Reset(pb.ResetRequest(start=Timestamp(seconds=1))))
    assert reason == "INVALID_FIELD"


async def test_a_drain_waits_for_workers(
    server: ManualServer, client: AsyncClient, tests: Any
) -> None:
    pushed = await client.push("mail", b"")
    async with at_work(server, "mail", done):
        await tests.Drain(pb.DrainRequest(queue="mail"))
    assert (await client.jobs.get(pushed.id)).state is JobState.COMPLETED


async def test_a_drain_says_what_is_left_and_why(client: AsyncClient, tests: Any) -> None:
    await client.push("mail", b"")
    await client.push("later", b"", delay="1h")
    reason, message = await refused(tests.Drain(pb.DrainRequest(timeout=SOON)))
    assert reason == "NOT_REACHED"
    assert "mail: 1 READY" in message
    assert "no connected worker takes from queue mail" in message
    assert "later" not in message
    await tests.Drain(pb.DrainRequest(queue="later", timeout=SOON))


async def test_waits_until_as_many_jobs_match(client: AsyncClient, tests: Any) -> None:
    waiting = asyncio.ensure_future(tests.WaitFor(pb.WaitForRequest(count=2)))
    await client.push("mail", b"1")
    await client.push("mail", b"2")
    assert [job.payload for job in (await waiting).jobs] == [b"1", b"2"]


async def test_a_wait_says_what_is_there_instead(client: AsyncClient, tests: Any) -> None:
    await client.push("mail", b"")
    request = pb.WaitForRequest(timeout=SOON)
    request.filter.states.append(job_pb2.JOB_STATE_COMPLETED)
    assert await refused(tests.WaitFor(request)) == (
        "NOT_REACHED",
        "no job matches; in any state: 1 READY",
    )
    request = pb.WaitForRequest(count=3, timeout=SOON)
    assert (await refused(tests.WaitFor(request)))[1] == "3 jobs wanted, 1 match"
    assert (await refused(tests.WaitFor(pb.WaitForRequest(count=1_001))))[0] == "INVALID_FIELD"


async def test_a_reset_leaves_nothing(
    server: ManualServer, client: AsyncClient, tests: Any
) -> None:
    await client.push("mail", b"", job_key="once")
    await client.queues.update("mail", max_attempts=7)
    await client.schedules.create("often", "mail", cron="* * * * *")
    await server.controls.advance(minutes(10))
    response = await tests.Reset(pb.ResetRequest(start=Timestamp(seconds=START_MS // 1_000)))
    assert response.now.ToMilliseconds() == START_MS == server.controls.wall_ms()
    assert [job async for job in client.jobs.list()] == []
    assert [queue async for queue in client.queues.list()] == []
    assert [one async for one in client.schedules.list()] == []
    assert (await client.push("mail", b"", job_key="once")).outcome.name == "CREATED"


async def test_a_worker_outlives_a_reset(
    server: ManualServer, client: AsyncClient, tests: Any
) -> None:
    """Its stream is ended, and it comes back."""
    async with at_work(server, "mail", done):
        for _ in range(2):
            await tests.Reset(pb.ResetRequest())
        pushed = await client.push("mail", b"")
        await tests.Drain(pb.DrainRequest())
        assert (await client.jobs.get(pushed.id)).state is JobState.COMPLETED


async def test_a_pull_that_waits_goes_on_with_the_empty_server(
    client: AsyncClient, tests: Any
) -> None:
    """The client repeats it."""
    waiting = asyncio.ensure_future(client.pull("mail", wait="30s"))
    await client.admin.stats()
    await tests.Reset(pb.ResetRequest())
    pushed = await client.push("mail", b"")
    assert [job.id for job in await waiting] == [pushed.id]
