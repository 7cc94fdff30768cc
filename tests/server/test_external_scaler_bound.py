"""How many streams of KEDA's external scaler may be open."""

from __future__ import annotations

import grpc

from jobline.v1 import job_service_pb2 as jobs
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import running_server
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
