"""How many streams of KEDA's external scaler, of events and of health may be open."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from jobline.v1 import job_service_pb2 as jobs
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import running_server
from tests.server.access import auth_file, channel_of, channel_with, of_verbs
from tests.server.conftest import connect, until
from tests.server.test_external_scaler import Scaler, answer, refusal


async def test_streams_are_bounded_by_themselves(transport: str) -> None:
    """By `max_scalers`; one that leaves makes room. They take no place of those who watch events,
    nor the other way round: neither keeps the other out."""
    async with (
        running_server(transport=transport, max_scalers=10, max_watchers=1) as server,
        connect(server.address) as channel,
    ):
        scaler = Scaler(channel)
        streams = [scaler.stream(queue=f"q{number}") for number in range(10)]
        for stream in streams:
            await stream.read()

        code, _ = await refusal(scaler.stream(queue="mail").read())
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        admission = server.server.admission
        events = JobServiceStub(channel).Watch(jobs.WatchRequest())
        await until(lambda: len(admission.watchers) == 1)
        streams.pop().cancel()
        await until(lambda: len(admission.scalers) == 9)
        streams.append(scaler.stream(queue="mail"))
        assert await answer(streams[-1]) is False

        events.cancel()
        for stream in streams:
            stream.cancel()
        await until(lambda: not len(admission.scalers))
        assert not server.server.runtime.activity._queues


async def test_watches_of_health_take_no_place_of_others(transport: str, tmp_path: Path) -> None:
    """Anybody may open them: they were among the watchers, and a thousand kept all others out."""
    path = auth_file(tmp_path, of_verbs())
    async with (
        running_server(
            transport=transport, auth=path, max_watchers=1, data=tmp_path / "data"
        ) as server,
        channel_with(server.address) as anybody,
        channel_of(server.address, "all-read") as reader,
    ):
        admission = server.server.admission
        admission.health_watchers.limit = 3
        health: Any = HealthStub(anybody)
        watches = [health.Watch(health_pb2.HealthCheckRequest()) for _ in range(3)]
        for watch in watches:
            await watch.read()

        code, _ = await refusal(health.Watch(health_pb2.HealthCheckRequest()).read())
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await health.Check(health_pb2.HealthCheckRequest())).status
        events = JobServiceStub(reader).Watch(jobs.WatchRequest())
        await until(lambda: len(admission.watchers) == 1)
        assert len(admission.health_watchers) == 3
        for watch in (events, *watches):
            watch.cancel()
        await until(lambda: not len(admission.watchers) and not len(admission.health_watchers))


@pytest.mark.parametrize("kind", ["events", "scalers"])
async def test_one_caller_has_half_of_the_places(transport: str, tmp_path: Path, kind: str) -> None:
    """Who may read one queue kept all others out; who may read all queues has what there is."""

    def opened(channel: aio.Channel) -> Any:
        if kind == "scalers":
            return Scaler(channel).stream(queue="fuzz")
        return JobServiceStub(channel).Watch(jobs.WatchRequest(queues=["fuzz"]))

    path = auth_file(tmp_path, of_verbs())
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        server = await enter(
            running_server(
                transport=transport,
                auth=path,
                max_watchers=5,
                max_scalers=5,
                data=tmp_path / "data",
            )
        )
        admission = server.server.admission
        gate = admission.scalers if kind == "scalers" else admission.watchers
        some, other = [
            await enter(channel_of(server.address, name)) for name in ("fuzz-read", "all-read")
        ]
        streams = [opened(some) for _ in range(3)]
        await until(lambda: len(gate) == 3)
        code, said = await refusal(opened(some).read())
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "of one caller" in said
        streams.pop().cancel()
        await until(lambda: len(gate) == 2)
        streams.append(opened(some))
        await until(lambda: len(gate) == 3)

        for stream in streams:
            stream.cancel()
        await until(lambda: not len(gate) and not len(gate.shares))
        streams = [opened(other) for _ in range(5)]
        await until(lambda: len(gate) == 5)
        code, said = await refusal(opened(other).read())
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "of one caller" not in said
