"""/openapi.json: valid, whole, and true of what the server answers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from jobline_server.testing import RunningServer
from tests.server.calling import PACKAGE, method_of
from tests.server.http_calls import UNARY, client_of


@pytest.fixture
async def document(server: RunningServer) -> dict[str, Any]:
    """The document, as JSON."""
    async with client_of(server) as client:
        reply = await client.get("/openapi.json")
    assert reply.headers["content-type"] == "application/json"
    found: dict[str, Any] = reply.json()
    return found


async def test_the_document_is_valid_and_has_every_call(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()

    ours = {path for path in document["paths"] if path.startswith(f"/{PACKAGE}.")}
    assert ours == {f"/{PACKAGE}.{rpc}" for rpc in UNARY}
    assert "/grpc.health.v1.Health/Check" in document["paths"]


async def test_everything_of_the_protocol_is_described(document: dict[str, Any]) -> None:
    """By the comments of the protos; every field of a request and of a reply is there."""
    for rpc in UNARY:
        operation = document["paths"][f"/{PACKAGE}.{rpc}"]["post"]
        assert operation["description"], rpc
        for message in (method_of(rpc).input_type, method_of(rpc).output_type):
            schema = document["components"]["schemas"][message.full_name]
            assert set(schema["properties"]) == {field.json_name for field in message.fields}
    for name, schema in document["components"]["schemas"].items():
        if name.startswith(PACKAGE):
            assert schema["description"], name
            for field, described in schema.get("properties", {}).items():
                assert described["description"], f"{name}.{field}"


async def test_values_have_the_forms_of_json(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    job = schemas[f"{PACKAGE}.NewJob"]["properties"]
    assert job["data"]["contentEncoding"] == "base64"
    assert "Not together with data." in job["text"]["description"]
    assert job["delay"]["pattern"].endswith("s$")
    assert job["runAt"]["format"] == "date-time"
    push = schemas[f"{PACKAGE}.PushRequest"]["properties"]
    assert push["payloads"]["type"] == "array"
    assert push["ackLevel"]["$ref"] == f"#/components/schemas/{PACKAGE}.AckLevel"
    assert "ACK_LEVEL_FSYNCED" in schemas[f"{PACKAGE}.AckLevel"]["enum"]
    headers = schemas[f"{PACKAGE}.JobOptions"]["properties"]["headers"]
    assert headers["additionalProperties"] == {"type": "string"}
    reply = schemas[f"{PACKAGE}.PushResponse"]["properties"]
    assert reply["firstId"]["type"] == "string"
    assert set(schemas["Error"]["required"]) == {"code", "message"}


async def test_only_reading_is_for_the_page(server: RunningServer) -> None:
    async with httpx.AsyncClient(base_url=f"http://{server.http}") as client:
        assert (await client.head("/openapi.json")).status_code == 200
        assert (await client.post("/openapi.json")).status_code == 404
