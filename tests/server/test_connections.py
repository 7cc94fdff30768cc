"""Who opens as many connections as it can takes no place of others."""

from __future__ import annotations

import asyncio

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import running_server
from tests.server.conftest import until
from tests.server.raw_http import is_served

ONE_HOST = ("127.0.0.2", 0)
PUSH = job_service_pb2.PushRequest(queue="mail", payloads=[b"x"])


@pytest.mark.parametrize("transport", ["grpcio", "native"])
async def test_silent_connections_are_bounded(transport: str) -> None:
    """At the port of gRPC, where nobody says anything; the connection of another client goes on."""
    writers: list[asyncio.StreamWriter] = []
    async with running_server(transport=transport, max_connections=100) as server:
        host, _, port = server.address.rpartition(":")
        async with aio.insecure_channel(server.address) as channel:
            stub = JobServiceStub(channel)
            await stub.Push(PUSH)
            ended = 0

            async def hold() -> None:
                nonlocal ended
                reader, writer = await asyncio.open_connection(host, int(port), local_addr=ONE_HOST)
                writers.append(writer)
                # The server says what it takes; then nothing comes but the end.
                while await reader.read(1_024):
                    pass
                ended += 1

            holding = [asyncio.create_task(hold()) for _ in range(300)]
            await until(lambda: ended >= 200)
            await stub.Push(PUSH)
            assert channel.get_state().name == "READY"
            assert await is_served(server)
    await asyncio.gather(*holding)
    for writer in writers:
        writer.close()
    assert server.server.background.records["connections"].counts["closed"] >= 200
