"""One caller has half of the places for streams, long polls and waits at most: others find some."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import running_server
from tests.server.access import api_key, auth_file, channel_of, role
from tests.server.calling import Refusal, refusal_of
from tests.server.conftest import until

PLACES, HALF = 5, 3
LATER = {"queue": "fuzz", "jobs": [{"text": "x", "delay": "600s"}]}
POLL = {"queues": [{"queue": "fuzz"}], "wait": "60s"}
USUAL = ["push", "read", "work"]
# By kind of call: who may have all places beside who may do everything usual.
KINDS = {"streams": "work", "pulls": "work", "waiters": "read"}


def role_of(name: str, *permissions: tuple[list[str], list[str]]) -> str:
    return role(name, *permissions) + api_key(name, name)


def file_for(verb: str) -> str:
    """Callers of one queue, and one that may do this to all queues."""
    return role_of("some", (["fuzz"], USUAL)) + role_of("all", (["*"], [verb]), (["fuzz"], USUAL))


async def opened(kind: str, channel: aio.Channel) -> Any:
    """A call that stays open."""
    stub: Any = JobServiceStub(channel)
    if kind == "streams":
        return stub.Stream()
    if kind == "pulls":
        return stub.Pull(ParseDict(POLL, pb.PullRequest()))
    pushed = await stub.Push(ParseDict(LATER, pb.PushRequest()))
    return stub.Wait(pb.WaitRequest(ids=pushed.ids))


async def refusal_to(call: Any) -> Refusal:
    with pytest.raises(aio.AioRpcError) as caught:
        await (call.read() if hasattr(call, "read") else call)
    return refusal_of(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_one_caller_has_half_of_the_places(transport: str, tmp_path: Path, kind: str) -> None:
    """Who may work on one queue kept out all workers of others; who may do so on all has all."""
    bounds: dict[str, Any] = {f"max_{kind}": PLACES}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        path = auth_file(tmp_path, file_for(KINDS[kind]))
        server = await enter(running_server(transport=transport, auth=path, **bounds))
        gate = getattr(server.server.admission, kind)
        some, every = [await enter(channel_of(server.address, name)) for name in ("some", "all")]
        calls = [await opened(kind, some) for _ in range(HALF)]
        await until(lambda: len(gate) == HALF)
        refusal = await refusal_to(await opened(kind, some))
        assert refusal.reason == "TOO_MANY_CALLS"
        assert "of one caller" in refusal.message

        others = [await opened(kind, every) for _ in range(PLACES - HALF)]
        await until(lambda: len(gate) == PLACES)
        for call in (*calls, *others):
            call.cancel()
        await until(lambda: not len(gate))
        calls = [await opened(kind, every) for _ in range(PLACES)]
        await until(lambda: len(gate) == PLACES)
        refusal = await refusal_to(await opened(kind, every))
        assert refusal.reason == "TOO_MANY_CALLS"
        assert "of one caller" not in refusal.message
        for call in calls:
            call.cancel()
        await until(lambda: not len(gate))
