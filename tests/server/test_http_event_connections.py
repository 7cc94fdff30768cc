"""Connections of streams of events: quiet ones stay, those that are not read go."""

from __future__ import annotations

import json
from typing import Any

from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import until
from tests.server.http_calls import client_of
from tests.server.raw_http import Raw, port_of
from tests.server.sse import watching
from tests.server.test_http_events import push


def check(stream: Any) -> None:
    """Has the connection of a stream check its time now."""
    if stream._timer is not None:
        stream._timer.cancel()
        stream._check()


async def test_a_reader_that_stops_reading_is_cut_off(server: RunningServer) -> None:
    """It holds neither its place nor memory; what it had read tells where to resume."""
    raw = await Raw.to(server)
    raw.send(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
    watchers = server.server.admission.watchers
    await until(lambda: len(watchers) == 1)
    (deaf,) = port_of(server).server_state.connections
    many = json.dumps({"queue": "mail", "payloads": [""] * 10_000}).encode()
    async with client_of(server) as client, watching(server, "events=pushed&queue=sms") as other:
        await other.begun()
        while len(watchers) == 2:
            reply = await client.post(
                "/jobline.v1.JobService/Push",
                content=many,
                headers={"content-type": "application/json"},
            )
            assert reply.status_code == 200
            check(deaf)
        (job_id,) = await push(server, "x", queue="sms")
        assert (await other.read())[0].data["jobId"] == str(job_id)
    await until(lambda: not port_of(server).server_state.tasks)
    assert server.server.admission.reply_bytes == 0
    raw.writer.close()


async def test_a_quiet_stream_outlives_the_time_of_an_exchange(server: RunningServer) -> None:
    """However often its time is checked."""
    async with watching(server, "events=pushed") as watcher:
        await watcher.begun()
        (stream,) = port_of(server).server_state.connections
        for number in range(5):
            for _ in range(3):
                assert stream.is_streaming()
                check(stream)
            await push(server, str(number))
            assert await watcher.read()
    await until(lambda: stream not in port_of(server).server_state.connections)
    assert stream._timer is None


async def test_streams_make_room_last(transport: str) -> None:
    """Others that are idle or slow go before a stream that is read."""
    async with (
        running_server(transport=transport, max_http_connections=10) as server,
        watching(server, "events=pushed") as watcher,
    ):
        await watcher.begun()
        slow = [await Raw.to(server) for _ in range(20)]
        for raw in slow:
            raw.send(b"POST /jobline.v1.JobService/Push HTTP/1.1\r\n")
        (job_id,) = await push(server, "x")
        assert (await watcher.read())[0].data["jobId"] == str(job_id)
        for raw in slow:
            raw.writer.close()
