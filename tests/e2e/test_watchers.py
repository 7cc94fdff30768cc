"""Watchers: a thousand at once, and one that dies again and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio

from jobline import AsyncClient
from jobline.v1.event_pb2 import EVENT_KIND_PUSHED
from jobline.v1.job_service_pb2 import WatchRequest
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc import slow_readers
from jobline_server.testing import RunningServer, ServerProcess, running_server
from jobline_server.web import connections
from tests.server.conftest import until
from tests.server.raw_http import Raw
from tests.server.sse import Watcher, watching

GRPC, HTTP = 800, 198
QUERY = "queue=mail&events=pushed"


def request(token: str = "") -> WatchRequest:
    return WatchRequest(queues=["mail"], kinds=[EVENT_KIND_PUSHED], resume_token=token)


async def read_grpc(call: object, count: int) -> list[int]:
    """The jobs of the next events."""
    ids: list[int] = []
    while len(ids) < count:
        answer = await call.read()  # type: ignore[attr-defined]  # a call
        ids += [event.job_id for event in answer.events]
    return ids


async def read_http(watcher: Watcher, count: int) -> list[int]:
    """The jobs of the next events."""
    return [int(event.data["jobId"]) for event in await watcher.read(count)]


@asynccontextmanager
async def channels(address: str, count: int) -> AsyncIterator[list[aio.Channel]]:
    """Channels with a connection each."""
    async with AsyncExitStack() as stack:
        options = [("grpc.use_local_subchannel_pool", 1)]
        yield [
            await stack.enter_async_context(aio.insecure_channel(address, options=options))
            for _ in range(count)
        ]


@pytest.mark.timeout(120)
async def test_a_thousand_watchers_see_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both kinds, beside one of each kind that never reads: these are cut off, what waits for
    them is bounded, and the others get every event in order.
    """
    async with (
        running_server() as server,
        AsyncClient(server.address) as client,
        channels(server.address, 9) as (deaf, *opened),
        AsyncExitStack() as stack,
    ):
        calls = [JobServiceStub(opened[n % len(opened)]).Watch(request()) for n in range(GRPC)]
        for call in calls:
            await call.read()
        readers = [await stack.enter_async_context(watching(server, QUERY)) for _ in range(HTTP)]
        for reader in readers:
            await reader.begun()
        watchers = server.server.admission.watchers
        assert len(watchers) == GRPC + HTTP

        pushed = [(await client.push("mail", b"x")).id for _ in range(5)]
        seen = await asyncio.gather(
            *(read_grpc(call, 5) for call in calls), *(read_http(reader, 5) for reader in readers)
        )
        assert all(ids == pushed for ids in seen)

        await _cut_off_the_deaf(server, client, deaf, monkeypatch)
        assert len(watchers) == GRPC + HTTP
        more = [(await client.push("mail", b"x")).id for _ in range(2)]
        seen = await asyncio.gather(
            *(read_grpc(call, 2) for call in calls), *(read_http(reader, 2) for reader in readers)
        )
        assert all(ids == more for ids in seen)


async def _cut_off_the_deaf(
    server: RunningServer, client: AsyncClient, deaf: aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two more watchers, of another queue, take their places and no events, and lose them."""
    monkeypatch.setattr(slow_readers, "MESSAGE_SECONDS", 1.0)
    # Or a large message would take longer than the server has room for jobs.
    for module in (slow_readers, connections):
        monkeypatch.setattr(module, "BYTES_PER_SECOND_MIN", 1 << 20)
    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 1.0)
    admission = server.server.admission
    before = len(admission.watchers)
    call = JobServiceStub(deaf).Watch(WatchRequest(queues=["flood"]))
    await call.read()
    raw = await Raw.to(server)
    raw.send(b"GET /events?queue=flood HTTP/1.1\r\nHost: x\r\n\r\n")
    raw.reader._transport.pause_reading()  # type: ignore[attr-defined]  # its sockets fill up
    await until(lambda: len(admission.watchers) == before + 2)
    largest = 0
    while len(admission.watchers) > before:
        await client.push_payloads("flood", [b""] * 1_000)
        largest = max(largest, admission.reply_bytes)
    assert largest < 8 << 20
    await until(lambda: not admission.reply_bytes)
    call.cancel()
    raw.writer.close()


@pytest.mark.timeout(300)
async def test_a_watcher_that_is_killed_a_hundred_times_sees_every_event_once(
    tmp_path: Path,
) -> None:
    """In order, whichever way it comes back; the server is killed and restarted meanwhile."""
    chance = random.Random(7)
    pushed: list[int] = []
    seen: list[int] = []
    async with ServerProcess(tmp_path / "data") as server, AsyncClient(server.address) as client:
        token = await _token_of_now(server)
        for life in range(100):
            jobs = await client.push_payloads("mail", [b"x"] * chance.randint(1, 4))
            pushed += jobs.ids
            if life % 25 == 4:
                await server.restart()  # kill -9
            elif life % 25 == 14:
                assert await server.terminate() == 0
                await server.start()
            count = chance.randint(0, len(pushed) - len(seen))
            if count and chance.random() < 0.5:
                token = await _seen_by_http(server, token, count, seen)
            elif count:
                token = await _seen_by_grpc(server, token, count, seen)
        left = len(pushed) - len(seen)
        token = await _seen_by_http(server, token, left, seen) if left else token
        last = (await client.push("mail", b"last")).id
        await _seen_by_grpc(server, token, 1, seen)
    assert seen == [*pushed, last]


async def _token_of_now(server: ServerProcess) -> str:
    async with watching(server.http, QUERY) as watcher:
        return await watcher.begun()


async def _seen_by_http(server: ServerProcess, token: str, count: int, seen: list[int]) -> str:
    """Reads some events, and is gone in the middle of the others; returns the last id."""
    async with watching(server.http, QUERY, last_id=token) as watcher:
        events = await watcher.read(count)
    seen += [int(event.data["jobId"]) for event in events]
    return events[-1].id


async def _seen_by_grpc(server: ServerProcess, token: str, count: int, seen: list[int]) -> str:
    """The same over gRPC, which the Python client would resume by itself."""
    async with AsyncClient(server.address) as client:
        events = client.watch(queues=["mail"], kinds=["pushed"], resume_token=token)
        found = [await anext(events) for _ in range(count)]
        await events.aclose()
    seen += [event.job_id for event, _ in found]
    return found[-1].resume_token
