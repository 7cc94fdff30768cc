"""Calls over HTTP: every unary RPC with curl, in JSON and as binary messages, and what the head of
a request may say.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.commands import RefusalKind
from jobline_server.rpc.connect import bodies
from jobline_server.rpc.connect.failures import CODES
from jobline_server.rpc.errors import CODES as REFUSALS
from jobline_server.testing import RunningServer, running_server
from tests.server import world
from tests.server.calling import all_rpcs, method_of
from tests.server.conftest import connect
from tests.server.http_calls import (
    JSON,
    PROTO,
    UNARY,
    call_json,
    client_of,
    curl,
    is_unary,
    post,
    refusal_in,
    refusal_of,
)
from tests.server.valid_requests import VALID

PUSH = b'{"queue": "q", "payloads": ["aGk="]}'


@pytest.fixture
async def http(server: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server of the test's own."""
    async with client_of(server) as client:
        yield client


@pytest.fixture(scope="module")
async def shared(transport: str) -> AsyncIterator[RunningServer]:
    """A server that all RPCs of this file are called on."""
    async with running_server(transport=transport) as server:
        async with connect(server.address) as channel:
            await world.fill(channel)
        yield server


@pytest.fixture
async def shared_http(shared: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """A client of it, for requests that change nothing."""
    async with client_of(shared) as client:
        yield client


# What is asked for is not there, does not wait, is asked for a second time.
CODES_OF_VALID = {"NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "ALREADY_EXISTS"}


@pytest.mark.parametrize("rpc", UNARY)
async def test_every_unary_rpc_is_served(shared: RunningServer, rpc: str, tmp_path: Path) -> None:
    """The same request in JSON and in binary: a reply of the method's type, or its refusal."""
    method, valid = method_of(rpc), VALID[rpc]
    request = ParseDict(valid, GetMessageClass(method.input_type)())
    bodies = {JSON: json.dumps(valid).encode(), PROTO: request.SerializeToString()}
    for media_type, body in bodies.items():
        file = tmp_path / "body"
        file.write_bytes(body)

        status, reply = await curl(shared, rpc, file, media_type)

        if status != 200:
            refusal = refusal_in(json.loads(reply))
            assert refusal.code in CODES_OF_VALID
            assert REFUSALS[RefusalKind[refusal.reason]].name == refusal.code
            assert CODES[grpc.StatusCode[refusal.code]] == (refusal.code.lower(), status)
        elif media_type == PROTO:
            GetMessageClass(method.output_type).FromString(reply)
        else:
            ParseDict(json.loads(reply), GetMessageClass(method.output_type)())


async def test_health_is_served_too(shared_http: httpx.AsyncClient) -> None:
    """Every served service is."""
    reply = await shared_http.post("/grpc.health.v1.Health/Check", json={})

    assert reply.json() == {"status": "SERVING"}


async def test_a_job_goes_its_way(http: httpx.AsyncClient, channel: aio.Channel) -> None:
    """64-bit numbers are texts, names are lowerCamelCase, and what is not set is left out."""
    pushed = await call_json(http, "JobService/Push", json.loads(PUSH))
    assert pushed["count"] == 1
    pulled = await call_json(http, "JobService/Pull", {"queues": [{"queue": "q"}]})
    (job,) = pulled["jobs"]
    assert job["id"] == pushed["firstId"]
    assert isinstance(job["id"], str)
    assert job["payload"] == "aGk="
    acked = await call_json(
        http, "JobService/Ack", {"ids": [int(job["id"])], "deliveries": [job["delivery"]]}
    )
    assert acked == {}
    found = await world.picture(channel)
    assert found


async def test_calls_count_in_the_metrics_of_their_methods(http: httpx.AsyncClient) -> None:
    await post(http, "JobService/Push", PUSH)
    page = await http.get("/metrics")

    push = 'service="jobline.v1.JobService"'
    assert f'jobline_calls_total{{code="OK",method="Push",{push}}} 1.0' in page.text


@pytest.mark.parametrize("rpc", [rpc for rpc in all_rpcs() if not is_unary(rpc)])
async def test_a_stream_names_grpc(
    shared: RunningServer, shared_http: httpx.AsyncClient, rpc: str
) -> None:
    refusal = refusal_of(await post(shared_http, rpc, b"{}"))
    assert (refusal.code, refusal.reason) == ("UNIMPLEMENTED", "NOT_SERVED")
    assert shared.address in refusal.message

    # To a client of Connect's streams, whose errors are in the last frame.
    reply = await post(shared_http, rpc, b"\0\0\0\0\2{}", "application/connect+json")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/connect+json"
    assert reply.content[0] == 2
    assert int.from_bytes(reply.content[1:5], "big") == len(reply.content) - 5
    assert refusal_in(json.loads(reply.content[5:])["error"]) == refusal


@pytest.mark.parametrize(
    "path",
    ["/jobline.v1.JobService/Nope", "/jobline.v1.NoService/Push", "/jobline.v1.jobservice/push"],
)
async def test_an_unknown_method_is_not_found(shared_http: httpx.AsyncClient, path: str) -> None:
    reply = await shared_http.post(path, json={})

    assert reply.status_code == 404
    assert refusal_of(reply).code == "UNIMPLEMENTED"


@pytest.mark.parametrize("path", ["/nothing", "/a/b", "/jobline.v1.JobService/Push/more"])
async def test_an_unknown_path_is_not_found(shared_http: httpx.AsyncClient, path: str) -> None:
    assert (await shared_http.post(path, json={})).status_code == 404


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
async def test_a_method_is_called_by_post(shared_http: httpx.AsyncClient, verb: str) -> None:
    reply = await shared_http.request(verb, "/jobline.v1.JobService/Push")

    assert reply.status_code == 405
    assert reply.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "", "application/xml", "application/grpc", "application/json; charset=latin-1"],
)
async def test_an_unknown_media_type_is_refused(
    shared_http: httpx.AsyncClient, media_type: str
) -> None:
    """Also because browsers send `text/plain` for any page, without asking first."""
    reply = await post(shared_http, "JobService/Push", PUSH, media_type)

    assert reply.status_code == 415
    assert reply.headers["accept-post"] == f"{JSON}, {PROTO}"
    assert refusal_of(reply).code == "UNIMPLEMENTED"


async def test_a_media_type_may_have_its_charset(http: httpx.AsyncClient) -> None:
    reply = await post(http, "JobService/Push", PUSH, 'Application/JSON; charset="UTF-8"')
    assert reply.status_code == 200


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"connect_protocol_version": "2"}, "connect-protocol-version"),
        ({"connect_timeout_ms": "-1"}, "connect-timeout-ms"),
        ({"connect_timeout_ms": "12345678901"}, "connect-timeout-ms"),
        ({"connect_timeout_ms": "1.5"}, "connect-timeout-ms"),
        ({"connect_timeout_ms": ""}, "connect-timeout-ms"),
    ],
)
async def test_a_bad_header_is_named(
    shared_http: httpx.AsyncClient, headers: dict[str, str], field: str
) -> None:
    refusal = refusal_of(await post(shared_http, "JobService/Push", PUSH, **headers))

    assert (refusal.code, refusal.reason) == ("INVALID_ARGUMENT", "INVALID_FIELD")
    assert refusal.field == field


@pytest.mark.parametrize("milliseconds", ["0", "1", "200"])
async def test_a_call_ends_at_its_timeout(http: httpx.AsyncClient, milliseconds: str) -> None:
    """And the pull that it ended leased nothing."""
    pull = b'{"queues": [{"queue": "q"}], "wait": "50s"}'
    reply = await post(http, "JobService/Pull", pull, connect_timeout_ms=milliseconds)

    assert reply.status_code == 504
    assert refusal_of(reply).code == "DEADLINE_EXCEEDED"
    await post(http, "JobService/Push", PUSH)
    assert (await post(http, "JobService/Pull", pull)).json()["jobs"][0]["attempt"] == 1


async def test_a_body_may_be_compressed(http: httpx.AsyncClient) -> None:
    reply = await post(http, "JobService/Push", gzip.compress(PUSH), content_encoding="gzip")
    assert reply.json()["count"] == 1
    reply = await post(http, "JobService/Push", PUSH, content_encoding="identity")
    assert reply.json()["count"] == 1


async def test_an_unknown_encoding_is_refused(shared_http: httpx.AsyncClient) -> None:
    reply = await post(shared_http, "JobService/Push", PUSH, content_encoding="br")

    refusal = refusal_of(reply)
    assert (reply.status_code, refusal.code) == (501, "UNIMPLEMENTED")
    assert "gzip" in refusal.message
    assert reply.headers["accept-encoding"] == "identity, gzip"


@pytest.mark.parametrize(
    "body",
    [b"no gzip", gzip.compress(PUSH)[:-4], gzip.compress(PUSH) + b"x", gzip.compress(b"")],
    ids=["no gzip", "cut short", "more behind it", "nothing in it"],
)
async def test_a_damaged_encoding_is_refused(shared_http: httpx.AsyncClient, body: bytes) -> None:
    refusal = refusal_of(await post(shared_http, "JobService/Push", body, content_encoding="gzip"))

    assert (refusal.code, refusal.reason) == ("INVALID_ARGUMENT", "MALFORMED_MESSAGE")


async def test_a_bug_gives_its_number_alone(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of an exception reaches the caller."""

    def break_down(*_given: Any) -> None:
        raise KeyError("a secret")

    monkeypatch.setattr(bodies, "json_of", break_down)
    reply = await post(http, "AdminService/GetStats", b"{}")

    refusal = refusal_of(reply)
    assert (reply.status_code, refusal.code, refusal.reason) == (500, "INTERNAL", "BUG")
    assert refusal.message == "a bug in the server, logged as http-1"


async def test_the_calls_can_be_turned_off(transport: str) -> None:
    """For a port that only monitoring may reach."""
    async with (
        running_server(transport=transport, http_calls=False) as server,
        client_of(server) as client,
    ):
        assert (await post(client, "JobService/Push", PUSH)).status_code == 404
        assert (await client.get("/openapi.json")).status_code == 404
        assert (await client.get("/healthz")).status_code == 200


async def test_a_client_has_one_rate_by_either_way(transport: str) -> None:
    """By HTTP as by gRPC, and no header of the caller changes who it is."""
    async with (
        running_server(transport=transport, client_rate=1, client_burst=2) as server,
        client_of(server) as client,
        connect(server.address) as channel,
    ):
        request = job_service_pb2.PushRequest(queue="q", payloads=[b"x"] * 2)
        await JobServiceStub(channel).Push(request)

        reply = await post(client, "JobService/Push", PUSH, x_forwarded_for="10.9.8.7")

        assert reply.status_code == 429
        refusal = refusal_of(reply)
        assert refusal.reason == "CLIENT_RATE"
        assert "google.rpc.RetryInfo" in refusal.details
