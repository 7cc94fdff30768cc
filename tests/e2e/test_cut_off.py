"""A watcher that does not read is cut off, and goes on after the last event that it has."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from grpc import aio

from jobline import AsyncClient, EventKind, NewJob
from jobline.v1.event_pb2 import EVENT_KIND_PUSHED
from jobline.v1.job_service_pb2 import WatchRequest, WatchResponse
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc import slow_readers
from jobline_server.rpc.tls.callers import UNKNOWN_PEER
from jobline_server.testing import RunningServer
from tests.server.calling import refusal_of

# Events of these are large also where they come in columns.
NAMES = [f"{number:03}".ljust(256, "x") for number in range(500)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message has this long, and no bytes count."""
    monkeypatch.setattr(slow_readers, "MESSAGE_SECONDS", 0.5)
    monkeypatch.setattr(slow_readers, "BYTES_PER_SECOND_MIN", 64 << 20)


async def flood(server: RunningServer, client: AsyncClient) -> list[int]:
    """Pushes until no watcher is left; returns the ids."""
    pushed: list[int] = []
    jobs = [NewJob(b"", name=name) for name in NAMES]
    async with asyncio.timeout(60):
        while len(server.server.admission.watchers):
            pushed += [job.id for job in await client.push_many("flood", jobs)]
    return pushed


async def read_to_the_end(call: Any, into: list[WatchResponse]) -> None:
    """Reads until the call ends, or raises what it ended with."""
    while (answer := await call.read()) is not aio.EOF:
        into.append(answer)


def request(token: str = "") -> WatchRequest:
    return WatchRequest(queues=["flood"], kinds=[EVENT_KIND_PUSHED], resume_token=token)


@pytest.mark.usefixtures("impatient")
async def test_who_reads_on_gets_a_status_and_has_a_token(
    server: RunningServer, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind what was sent before, which is whole. The token of the last message has every event
    that follows, none twice.
    """
    caplog.set_level("INFO")
    async with aio.insecure_channel(server.address) as channel:
        call: Any = JobServiceStub(channel).Watch(request())
        token = (await call.read()).resume_token
        pushed = await flood(server, client)
        left: list[WatchResponse] = []
        with pytest.raises(aio.AioRpcError) as cut_off:
            await read_to_the_end(call, left)
        seen = [event.job_id for answer in left for event in answer.events]
        token = left[-1].resume_token if left else token
        told = refusal_of(cut_off.value)
        assert (told.code, told.reason) == ("UNAVAILABLE", "CUT_OFF")
        assert 0 < len(seen) < len(pushed)
        call = JobServiceStub(channel).Watch(request(token))
        while len(seen) < len(pushed):
            answer = await call.read()
            seen += [event.job_id for event in answer.events]
        call.cancel()
    assert seen == pushed
    peer = UNKNOWN_PEER if server.server.transport == "native" else "ipv4:127.0.0.1"
    assert peer in next(text for text in caplog.messages if "cut off" in text)


@pytest.mark.usefixtures("impatient")
async def test_the_client_goes_on_by_itself(server: RunningServer, client: AsyncClient) -> None:
    """Its loop sees every event once and in order, as if nothing had been."""
    async with (
        AsyncClient(server.address) as slow,
        aclosing(slow.watch(queues=["flood"], kinds=[EventKind.PUSHED])) as events,
    ):
        first = asyncio.ensure_future(anext(events))
        pushed: list[int] = []
        while not first.done():
            pushed.append((await client.push("flood", b"")).id)
        seen = [(await first).event.job_id]
        # Those before the watch had begun are none of its events.
        pushed = pushed[pushed.index(seen[0]) :] + await flood(server, client)
        async for event, _ in events:
            seen.append(event.job_id)
            if len(seen) == len(pushed):
                break
    assert seen == pushed
