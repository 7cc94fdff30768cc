"""Callers who mean no good, over the wire; `tests/unit/auth` has their tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1 import limiter_service_pb2 as limiter_pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.limiter_service_pb2_grpc import LimiterServiceStub
from jobline_server.auth.api_keys import key_of
from jobline_server.rpc.access import refusals
from jobline_server.telemetry.few_lines import LINES_PER_SECOND
from jobline_server.testing import RunningServer, running_server
from tests.server import http_calls
from tests.server.access import auth_file, channel_of, channel_with, key, of_verbs, role
from tests.server.calling import Refusal, refusal_of
from tests.server.world import make
from tests.unit.auth.tokens import Issuer, issuer_lines

PUSH = pb.PushRequest(queue="fuzz", payloads=[b"x"])


@pytest.fixture
async def guarded(transport: str, tmp_path: Path) -> AsyncIterator[RunningServer]:
    path = auth_file(tmp_path, of_verbs())
    async with running_server(transport=transport, auth=path, data=tmp_path / "data") as server:
        yield server


async def refused(server: RunningServer, *metadata: tuple[str, str]) -> Refusal:
    async with channel_with(server.address, *metadata) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await JobServiceStub(channel).Push(PUSH)
    return refusal_of(caught.value)


async def test_two_headers_are_none(guarded: RunningServer) -> None:
    """What stands before the server might have checked the other one."""
    good = ("authorization", f"Bearer {key('root')}")
    for headers in (
        [good, good],
        [("authorization", "Bearer x"), good],
        [good, ("authorization", "x")],
    ):
        refusal = await refused(guarded, *headers)
        assert (refusal.code, refusal.reason) == ("UNAUTHENTICATED", "TOKEN_MALFORMED")


async def test_two_headers_are_none_over_http(guarded: RunningServer) -> None:
    bearer = ("authorization", f"Bearer {key('root')}")
    async with http_calls.client_of(guarded) as client:
        reply = await client.post(
            "/jobline.v1.JobService/Push",
            content=b'{"queue": "fuzz", "payloads": ["eA=="]}',
            headers=httpx.Headers([bearer, bearer, ("content-type", "application/json")]),
        )
    assert reply.status_code == 401
    assert http_calls.refusal_of(reply).reason == "TOKEN_MALFORMED"


async def test_a_huge_header(guarded: RunningServer) -> None:
    """Is refused by the transport, or here; the server goes on. Native's is HTTP's 431, which gRPC
    or ends the connection.
    """
    codes = {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN"}
    for size in (9_000, 60_000, 1_000_000):
        refusal = await refused(guarded, ("authorization", "Bearer " + "x" * size))
        assert refusal.code in codes
    async with channel_of(guarded.address, "root") as channel:
        await JobServiceStub(channel).Push(PUSH)


async def test_a_refused_request_is_not_decoded(guarded: RunningServer) -> None:
    """Bytes that are no message are refused for their caller, not for what they are."""
    async with channel_with(guarded.address) as channel:
        push: Any = channel.unary_unary("/jobline.v1.JobService/Push")
        with pytest.raises(aio.AioRpcError) as caught:
            await push(b"\xff\xff\xff")
    assert refusal_of(caught.value).reason == "AUTH_REQUIRED"


@pytest.mark.parametrize("shown", ["nothing", "another issuer's", "an old one"])
async def test_a_body_is_not_read_without_a_token(
    tmp_path: Path, transport: str, shown: str
) -> None:
    """The refusal comes before the body, which may have ten megabytes: bodies of many who only show
    what looks like a token held the room of all.
    """
    issuer = Issuer()
    (tmp_path / "keys.json").write_bytes(issuer.jwks())
    lines = role("all", (["*"], ["push"])) + issuer_lines('jwks_file = "keys.json"')
    path, header = auth_file(tmp_path, lines), ""
    if shown != "nothing":
        token = Issuer().token() if shown == "another issuer's" else issuer.token(seconds=-600)
        header = f"authorization: Bearer {token}\r\n"
    async with running_server(transport=transport, auth=path, data=tmp_path / "data") as server:
        host, port = server.http.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /jobline.v1.JobService/Push HTTP/1.1\r\nhost: x\r\n"
            b"content-type: application/json\r\ncontent-length: 10000000\r\n"
            + header.encode()
            + b"\r\n"
        )
        async with asyncio.timeout(20):
            assert b" 401 " in await reader.readline()
        writer.close()


async def test_refusals_fill_no_log(
    guarded: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some lines a second, with the number of those that were left out; each one is counted."""
    lines: list[dict[str, Any]] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            lines.append(fields)

    monkeypatch.setattr(refusals, "LOG", Log())
    access = guarded.server.authentication.access
    assert access is not None
    seconds = 7.0
    access.refusals._lines._clock = lambda: seconds
    made_up = key_of(b"x" * 32)
    async with channel_with(guarded.address, ("authorization", f"Bearer {made_up}")) as channel:
        stub = JobServiceStub(channel)
        calls = [stub.Push(PUSH) for _ in range(100)]
        replies = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(reply, aio.AioRpcError) for reply in replies)
        assert len(lines) == LINES_PER_SECOND
        seconds = 8.0
        with pytest.raises(aio.AioRpcError):
            await stub.Push(PUSH)
    assert lines[-1]["left_out"] == 90
    assert access.refusals.counts["TOKEN_UNKNOWN"] == 101
    assert made_up not in str(lines)
    async with http_calls.client_of(guarded) as client:
        bearer = {"authorization": f"Bearer {key('root')}"}
        page = (await client.get("/metrics", headers=bearer)).text
    assert 'jobline_auth_refused_total{reason="TOKEN_UNKNOWN"} 101.0' in page


async def test_pages(guarded: RunningServer) -> None:
    """Health is for probes; counters name queues, and so are for those who may read them."""
    async with http_calls.client_of(guarded) as client:
        for path, anybody, push, read in (
            ("/", 200, 200, 200),
            ("/healthz", 200, 200, 200),
            ("/readyz", 200, 200, 200),
            ("/openapi.json", 401, 200, 200),
            ("/metrics", 401, 403, 200),
            ("/metrics/", 401, 403, 307),
            ("/nothing", 401, 404, 404),
        ):
            found = [(await client.get(path)).status_code]
            for name in ("fuzz-push", "all-read"):
                bearer = {"authorization": f"Bearer {key(name)}"}
                found.append((await client.get(path, headers=bearer)).status_code)
            assert found == [anybody, push, read], path


async def test_events_over_http(guarded: RunningServer) -> None:
    """The stream, and the snapshot before it, are those of the caller."""
    async with http_calls.client_of(guarded) as client:
        for path, name, code in (
            ("/events?queue=fuzz", "", 401),
            ("/events?queue=fuzz", "fuzz-push", 403),
            ("/events", "fuzz-read", 403),
            ("/events?queue=other&snapshot=1", "fuzz-read", 403),
        ):
            headers = {"authorization": f"Bearer {key(name)}"} if name else {}
            reply = await client.get(path, headers=headers)
            assert reply.status_code == code, path
        bearer = {"authorization": f"Bearer {key('fuzz-read')}"}
        async with channel_of(guarded.address, "root") as channel:
            await JobServiceStub(channel).Push(PUSH)
        url = "/events?queue=fuzz&snapshot=1"
        async with client.stream("GET", url, headers=bearer) as events:
            assert events.status_code == 200
            async for line in events.aiter_lines():
                if line.startswith("data:"):
                    assert "fuzz" in line
                    break


async def test_a_socket_is_no_way_around(tmp_path: Path, transport: str) -> None:
    """Callers on the machine show a token, too."""
    path = auth_file(tmp_path, of_verbs())
    async with (
        running_server(
            transport=transport, auth=path, unix_socket=tmp_path / "s", data=tmp_path / "data"
        ),
        grpc.aio.insecure_channel(f"unix:{tmp_path / 's'}") as channel,
    ):
        with pytest.raises(aio.AioRpcError) as caught:
            await JobServiceStub(channel).Push(PUSH)
    assert refusal_of(caught.value).reason == "AUTH_REQUIRED"


async def test_a_worker_does_not_close_the_limiter_of_others_for_longer_than_a_day(
    guarded: RunningServer,
) -> None:
    """It may say that a limit is reached, and has no role to change the limiter."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=364)
    empty: Any = make(limiter_pb.EmptyLimiterRequest, limiter="shared", until=later)
    get = limiter_pb.GetLimiterRequest(limiter="shared")
    async with (
        channel_of(guarded.address, "root") as root,
        channel_of(guarded.address, "fuzz-work") as worker,
    ):
        limiters = LimiterServiceStub(root)
        upsert = limiter_pb.UpsertLimiterRequest(limiter="shared", concurrency=5)
        await limiters.UpsertLimiter(upsert)
        job = {"options": {"limiters": ["shared"]}}
        await JobServiceStub(root).Push(make(pb.PushRequest, queue="fuzz", jobs=[job]))
        pulled = await JobServiceStub(worker).Pull(make(pb.PullRequest, queues=[{"queue": "fuzz"}]))
        lease = {"id": pulled.jobs[0].id, "delivery": pulled.jobs[0].delivery}
        item = lease | {"why": pb.RELEASE_REASON_LIMITED, "limiter": "shared", "until": later}
        await JobServiceStub(worker).Release(make(pb.ReleaseRequest, items=[item]))
        limited = (await limiters.GetLimiter(get)).limiter.limited_until.ToDatetime(UTC)
        assert timedelta(hours=23) < limited - datetime.now(UTC) <= timedelta(days=1)
        with pytest.raises(aio.AioRpcError) as caught:
            await LimiterServiceStub(worker).EmptyLimiter(empty)
        assert refusal_of(caught.value).reason == "NOT_ALLOWED"
        await limiters.EmptyLimiter(empty)
        found = await limiters.GetLimiter(get)
    assert found.limiter.limited_until.ToDatetime(UTC) == later
