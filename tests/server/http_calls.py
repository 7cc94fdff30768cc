"""Calls methods over HTTP, and reads errors as `calling` reads those of gRPC."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import grpc
import httpx
from google.rpc import error_details_pb2

from tests.server.calling import PACKAGE, Refusal, all_rpcs, method_of

JSON, PROTO = "application/json", "application/proto"
# Names of gRPC's codes that Connect writes otherwise.
SPELT = {"canceled": "CANCELLED"}
SECONDS = 50.0


def is_unary(rpc: str) -> bool:
    """Whether a method is served over HTTP."""
    method = method_of(rpc)
    return not method.client_streaming and not method.server_streaming


UNARY = [rpc for rpc in all_rpcs() if is_unary(rpc)]


def client_of(server: Any) -> httpx.AsyncClient:
    """A client of the HTTP port."""
    return httpx.AsyncClient(base_url=f"http://{server.http}", timeout=SECONDS)


async def post(
    client: httpx.AsyncClient, rpc: str, body: bytes, media_type: str = JSON, **headers: str
) -> httpx.Response:
    """Calls a method with a body; `a_b` stands for the header `a-b`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    path = f"/{PACKAGE}.{rpc}"
    return await client.post(path, content=body, headers={"content-type": media_type, **named})


async def call_json(client: httpx.AsyncClient, rpc: str, request: Any, **headers: str) -> Any:
    """Calls a method with JSON; the JSON of its reply."""
    reply = await post(client, rpc, json.dumps(request).encode(), **headers)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == JSON
    return reply.json()


def refusal_of(reply: httpx.Response) -> Refusal:
    """The parts of an error, which must be as the protocol says."""
    assert reply.status_code != 200, reply.text
    assert reply.headers["content-type"] == JSON
    return refusal_in(reply.json())


def refusal_in(error: dict[str, Any]) -> Refusal:
    """The parts of an error's JSON."""
    assert set(error) <= {"code", "message", "details"}
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in error.get("details", ()):
        assert "=" not in detail["value"], "padding"
        value = base64.b64decode(detail["value"] + "=" * (-len(detail["value"]) % 4))
        for message in (info, bad):
            if detail["type"] == message.DESCRIPTOR.full_name:
                message.ParseFromString(value)
        if detail["type"].endswith("ErrorInfo"):
            shown = {"reason": info.reason, "domain": info.domain}
            if info.metadata:
                assert detail["debug"].pop("metadata") == dict(info.metadata)
            assert detail["debug"] == shown
    code = SPELT.get(error["code"], error["code"].upper())
    assert code in grpc.StatusCode.__members__
    return Refusal(
        code=code,
        message=error["message"],
        reason=info.reason,
        domain=info.domain,
        field=bad.field_violations[0].field if bad.field_violations else "",
        details=tuple(detail["type"] for detail in error.get("details", ())),
    )


async def curl(server: Any, rpc: str, body: Path, media_type: str) -> tuple[int, bytes]:
    """What curl gets for a body: the status, and the body of the reply."""
    process = await asyncio.create_subprocess_exec(
        "curl", "--silent", "--show-error", "--write-out", "\n%{http_code} %{content_type}",
        "--header", f"Content-Type: {media_type}", "--header", "Connect-Protocol-Version: 1",
        "--data-binary", f"@{body}", f"http://{server.http}/{PACKAGE}.{rpc}",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0
    reply, _, end = said.rpartition(b"\n")
    status, found = end.decode().split(" ")
    assert found == (media_type if status == "200" else JSON)
    return int(status), reply
