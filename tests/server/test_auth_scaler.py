"""Who may ask as KEDA does: callers that may read the queue."""

from __future__ import annotations

import grpc
import pytest

from jobline_server.testing import RunningServer
from tests.server.access import channel_of, channel_with
from tests.server.test_external_scaler import Scaler


async def test_a_caller_who_may_read_the_queue_scales_by_it(guarded: RunningServer) -> None:
    async with channel_of(guarded.address, "fuzz-read") as channel:
        scaler = Scaler(channel)
        assert not await scaler.is_active(queue="fuzz-mail")
        assert (await scaler.value(queue="fuzz-mail")).metricValue == 0
        assert (await scaler.spec(queue="fuzz-mail")).targetSize > 0


async def test_a_queue_that_the_environment_names_is_asked_for(guarded: RunningServer) -> None:
    """KEDA sends it as `queueFromEnv`: nobody could scale by it but who may read all queues."""
    async with channel_of(guarded.address, "fuzz-read") as channel:
        scaler = Scaler(channel)
        assert not await scaler.is_active(queueFromEnv="fuzz-mail")
        assert (await scaler.value(queueFromEnv="fuzz-mail")).metricValue == 0
        for given, code in (
            ({"queueFromEnv": "other"}, grpc.StatusCode.PERMISSION_DENIED),
            ({"queueFromEnv": ""}, grpc.StatusCode.PERMISSION_DENIED),
            ({"queue": "fuzz-mail", "queueFromEnv": "other"}, grpc.StatusCode.INVALID_ARGUMENT),
            ({"queueFromEnv": "fuzz-mail", "colour": "red"}, grpc.StatusCode.INVALID_ARGUMENT),
        ):
            with pytest.raises(grpc.RpcError) as refused:
                await scaler.is_active(**given)
            assert refused.value.code() is code


@pytest.mark.parametrize("name", ["fuzz-push", "stranger"])
async def test_others_are_refused(guarded: RunningServer, name: str) -> None:
    async with channel_of(guarded.address, name) as channel:
        scaler = Scaler(channel)
        for ask in (scaler.is_active, scaler.spec, scaler.value):
            with pytest.raises(grpc.RpcError) as refused:
                await ask(queue="fuzz-mail")
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.RpcError) as refused:
            await scaler.stream(queue="fuzz-mail").read()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_nobody_asks_without_a_token_or_of_a_queue_that_is_not_named(
    guarded: RunningServer,
) -> None:
    async with channel_with(guarded.address) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            await Scaler(channel).is_active(queue="fuzz-mail")
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    async with channel_of(guarded.address, "fuzz-read") as channel:
        with pytest.raises(grpc.RpcError) as refused:
            await Scaler(channel).is_active()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
