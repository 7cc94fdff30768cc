"""KEDA's external scaler: what it asks as it asks, over both transports."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from jobline.v1 import job_pb2, queue_pb2, queue_service_pb2
from jobline.v1 import job_service_pb2 as jobs
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.rpc import externalscaler_pb2 as pb
from jobline_server.runtime.health import Health
from jobline_server.runtime.watch import activity
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import connect

SERVICE = "/externalscaler.ExternalScaler/"


class Scaler:
    """What KEDA's generated client is."""

    def __init__(self, channel: aio.Channel) -> None:
        self._channel = channel

    def _unary(self, method: str, response: Any) -> Any:
        return self._channel.unary_unary(
            SERVICE + method, lambda message: message.SerializeToString(), response.FromString
        )

    async def is_active(self, **metadata: str) -> bool:
        ref = pb.ScaledObjectRef(scalerMetadata=metadata)
        return bool((await self._unary("IsActive", pb.IsActiveResponse)(ref)).result)

    async def spec(self, **metadata: str) -> pb.MetricSpec:
        ref = pb.ScaledObjectRef(name="mail", namespace="prod", scalerMetadata=metadata)
        spec: pb.MetricSpec
        (spec,) = (await self._unary("GetMetricSpec", pb.GetMetricSpecResponse)(ref)).metricSpecs
        return spec

    async def value(self, name: str = "", **metadata: str) -> pb.MetricValue:
        ref = pb.ScaledObjectRef(scalerMetadata=metadata)
        request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName=name)
        value: pb.MetricValue
        (value,) = (await self._unary("GetMetrics", pb.GetMetricsResponse)(request)).metricValues
        return value

    def stream(self, **metadata: str) -> aio.UnaryStreamCall[Any, Any]:
        method: Any = self._channel.unary_stream(
            SERVICE + "StreamIsActive",
            lambda message: message.SerializeToString(),
            pb.IsActiveResponse.FromString,
        )
        call: aio.UnaryStreamCall[Any, Any] = method(pb.ScaledObjectRef(scalerMetadata=metadata))
        return call


@pytest.fixture
def scaler(channel: aio.Channel) -> Scaler:
    return Scaler(channel)


async def push(channel: aio.Channel, count: int = 1, **options: Any) -> None:
    request = jobs.PushRequest(
        queue="mail", payloads=[b""] * count, options=job_pb2.JobOptions(**options)
    )
    await JobServiceStub(channel).Push(request)


async def pull(channel: aio.Channel, count: int = 1) -> list[job_pb2.LeasedJob]:
    request = jobs.PullRequest(queues=[jobs.QueueWeight(queue="mail")], max_jobs=count)
    return list((await JobServiceStub(channel).Pull(request)).jobs)


async def ack(channel: aio.Channel, job: job_pb2.LeasedJob) -> None:
    item = jobs.AckItem(id=job.id, delivery=job.delivery)
    await JobServiceStub(channel).Ack(jobs.AckRequest(items=[item]))


async def answer(stream: aio.UnaryStreamCall[Any, Any]) -> bool:
    response: Any = await stream.read()
    return bool(response.result)


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_the_backlog_is_what_waits_and_what_runs(
    channel: aio.Channel, scaler: Scaler
) -> None:
    """Or the last replica would be stopped while it works on the last jobs."""
    await push(channel, 3)
    await push(channel, 2, group="one")
    (first, *_) = await pull(channel)
    # Of the group, the second waits for the first: another worker could not start it.
    value = await scaler.value(queue="mail")
    assert (value.metricName, value.metricValueFloat) == ("jobline-backlog", 4)
    assert value.metricValue == 4
    await ack(channel, first)
    assert (await scaler.value(queue="mail")).metricValueFloat == 3


async def test_a_paused_queue_needs_workers_only_for_what_they_hold(
    channel: aio.Channel, scaler: Scaler
) -> None:
    """They could start nothing."""
    await push(channel, 3)
    await pull(channel)
    await QueueServiceStub(channel).PauseQueue(queue_service_pb2.PauseQueueRequest(queue="mail"))

    assert (await scaler.value(queue="mail")).metricValueFloat == 1
    assert (await scaler.value(queue="mail", metric="oldest_age")).metricValueFloat == 0


async def test_a_queue_that_does_not_exist_has_no_work(scaler: Scaler) -> None:
    """It comes into being with its first job: that is no error."""
    assert not await scaler.is_active(queue="later")
    for metric in ("backlog", "oldest_age", "workers_needed"):
        assert (await scaler.value(queue="later", metric=metric)).metricValueFloat == 0


async def test_activity_begins_above_a_number_of_jobs(channel: aio.Channel, scaler: Scaler) -> None:
    """Default 0; one more than the number is needed."""
    await push(channel, 3)

    assert await scaler.is_active(queue="mail")
    assert await scaler.is_active(queue="mail", activationBacklog="2")
    assert not await scaler.is_active(queue="mail", activationBacklog="3")


async def test_the_target_is_of_the_metric(scaler: Scaler) -> None:
    """Both numbers, because older versions of KEDA read only the whole one."""
    spec = await scaler.spec(queue="mail")
    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == ("jobline-backlog", 10, 10)
    spec = await scaler.spec(queue="mail", metric="oldest_age", targetBacklogPerReplica="2.5")
    assert (spec.metricName, spec.targetSize) == ("jobline-oldest-age", 3)
    assert spec.targetSizeFloat == 2.5
    spec = await scaler.spec(queue="mail", metric="workers_needed")
    assert (spec.metricName, spec.targetSizeFloat) == ("jobline-workers-needed", 1)


async def test_the_oldest_age_counts_from_when_a_job_was_ready(transport: str) -> None:
    """A job that was scheduled for now has not waited since its push."""
    async with (
        running_server(transport=transport) as server,
        connect(server.address) as channel,
    ):
        scaler = Scaler(channel)
        later = job_pb2.NewJob(text="", delay=Duration(seconds=3_600))
        await JobServiceStub(channel).Push(jobs.PushRequest(queue="mail", jobs=[later]))
        assert (await scaler.value(queue="mail", metric="oldest_age")).metricValueFloat == 0
        await push(channel)

        value = await scaler.value("jobline-oldest-age", queue="mail", metric="oldest_age")

    assert 0 <= value.metricValueFloat < 30


async def test_the_workers_that_an_objective_needs(channel: aio.Channel, scaler: Scaler) -> None:
    """Each replica is one of them; a queue without an objective is an error that says so."""
    await push(channel)
    code, said = await refusal(scaler.value(queue="mail", metric="workers_needed"))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "queue mail needs an objective" in said

    within = queue_pb2.Objective(percent=99, start_within=Duration(seconds=30))
    request = queue_service_pb2.UpdateQueueRequest(
        queue="mail", settings=queue_pb2.QueueSettings(objective=within)
    )
    updated = await QueueServiceStub(channel).UpdateQueue(request)

    assert updated.queue.workers_needed.workers == 1
    assert (await scaler.value(queue="mail", metric="workers_needed")).metricValueFloat == 1


async def test_keys_of_keda_are_ignored_and_variables_are_read(
    channel: aio.Channel, scaler: Scaler
) -> None:
    """KEDA passes on all metadata of the trigger."""
    await push(channel)

    assert await scaler.is_active(
        queueFromEnv="mail", scalerAddress="jobline:7070", enableTLS="true", unsafeSsl="false"
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "scalerMetadata.queue: is required"),
        ({"queue": "a b"}, "scalerMetadata.queue: must be"),
        ({"queue": "a", "queu": "b"}, "scalerMetadata.queu: no such key"),
        ({"queue": "a", "x" * 999: "b"}, "scalerMetadata.…: no such key"),
        ({"queue": "a", "queueFromEnv": "b"}, "there is queue already"),
        ({"queue": "a", "metric": "size"}, "scalerMetadata.metric: must be one of backlog"),
        ({"queue": "a", "targetBacklogPerReplica": "0"}, "scalerMetadata.targetBacklogPerReplica"),
        ({"queue": "a", "targetBacklogPerReplica": "ten"}, "must be a number from 0.001"),
        ({"queue": "a", "targetBacklogPerReplica": "nan"}, "must be a number from 0.001"),
        ({"queue": "a", "targetBacklogPerReplica": "1" * 400}, "must be a number from 0.001"),
        ({"queue": "a", "activationBacklog": "-1"}, "scalerMetadata.activationBacklog"),
        ({"queue": "a", "activationBacklog": "1.5"}, "must be a whole number"),
    ],
)
async def test_metadata_that_cannot_be_meant_is_refused_by_its_key(
    filled: aio.Channel, metadata: dict[str, str], message: str
) -> None:
    """By each of the four methods."""
    scaler = Scaler(filled)
    calls = (scaler.is_active, scaler.spec, scaler.value)
    for call in (*calls, lambda **keys: scaler.stream(**keys).read()):
        code, said = await refusal(call(**metadata))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert message in said


async def test_too_many_keys_are_refused_before_they_are_read(filled: aio.Channel) -> None:
    """As every map of a request has a limit."""
    code, said = await refusal(Scaler(filled).is_active(**{f"key{n}": "" for n in range(65)}))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "scalerMetadata" in said


async def test_the_metric_of_another_trigger_is_refused(filled: aio.Channel) -> None:
    """Its value would be taken for this one's."""
    code, said = await refusal(Scaler(filled).value("jobline-oldest-age", queue="mail"))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "metricName: this trigger has the metric jobline-backlog" in said


async def test_a_watcher_hears_at_once_that_there_is_work(
    channel: aio.Channel, scaler: Scaler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that it is done, once it was done for a while; nothing in between."""
    monkeypatch.setattr(activity, "QUIET_SECONDS", 0)
    stream = scaler.stream(queue="mail")
    assert await answer(stream) is False

    await push(channel, 2)
    assert await answer(stream) is True
    for job in await pull(channel, 2):
        await ack(channel, job)

    assert await answer(stream) is False
    stream.cancel()


async def test_a_lost_shard_is_an_error_and_not_an_empty_queue(
    server: RunningServer, scaler: Scaler
) -> None:
    """Workers must not be stopped because nobody can see their jobs."""
    stream = scaler.stream(queue="mail")
    await stream.read()
    slots = server.server.runtime.core.slots
    slots.close(slots.of_queue("mail"), Health.FENCED, "another process has it")

    for call in (scaler.is_active(queue="mail"), scaler.value(queue="mail"), stream.read()):
        assert (await refusal(call))[0] is grpc.StatusCode.UNAVAILABLE


async def test_a_watcher_is_ended_when_the_server_stops(transport: str) -> None:
    """It is one of the calls that only wait."""
    async with running_server(transport=transport) as server:
        channel = connect(server.address)
        stream = Scaler(channel).stream(queue="mail")
        await stream.read()
        waiting = asyncio.ensure_future(stream.read())
    with pytest.raises(aio.AioRpcError) as caught:
        await waiting
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    await channel.close()
