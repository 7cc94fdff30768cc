"""Bad input over HTTP: bad_input.yaml in JSON and as binary messages, refused as by gRPC."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from grpc import aio

from jobline_server.rpc.transport import message_bytes_max
from jobline_server.testing import running_server
from tests.server import world
from tests.server.calling import expand
from tests.server.conftest import connect
from tests.server.http_calls import JSON, PROTO, client_of, is_unary, post, refusal_of
from tests.server.test_bad_input import TABLE, requests_of

BODY_BYTES_MAX = message_bytes_max(10 << 20)
Both = tuple[httpx.AsyncClient, aio.Channel, tuple[bytes, bytes]]


@pytest.fixture(scope="module")
async def both() -> AsyncIterator[Both]:
    """A client of the HTTP port and a channel to the same server, and what it is filled with."""
    async with (
        running_server() as server,
        connect(server.address) as channel,
        client_of(server) as client,
    ):
        await world.fill(channel)
        yield client, channel, await world.picture(channel)


# A row by itself would be a test that mostly looks at what all the others have left as it was.
@pytest.mark.timeout(240)
@pytest.mark.parametrize("media_type", [JSON, PROTO])
@pytest.mark.parametrize("rpc", [*filter(is_unary, TABLE)])
async def test_bad_input_is_refused_as_by_grpc(both: Both, rpc: str, media_type: str) -> None:
    """Code, reason and field are those of the table, and jobs and queues are as they were."""
    client, channel, before = both
    wrong: dict[str, tuple[object, ...]] = {}
    for row in TABLE[rpc]:
        if media_type == PROTO:
            (body,) = requests_of(rpc, row)
        elif "input" not in row or set(row["input"]) == {"hex"}:
            continue  # JSON cannot say it
        else:
            body = json.dumps(expand(row["input"])).encode()

        refusal = refusal_of(await post(client, rpc, body, media_type))

        found = (refusal.code, refusal.reason, refusal.field)
        if found != expected(row, body) or len(refusal.message) >= 200:
            wrong[row["why"]] = (*found, refusal.message)
    assert not wrong
    assert await world.picture(channel) == before


def expected(row: dict[str, Any], body: bytes) -> tuple[str, str, str]:
    """Returns the code, reason and field of a row."""
    if len(body) > BODY_BYTES_MAX:  # base64 is longer, and HTTP has a reason for it
        return "RESOURCE_EXHAUSTED", "TOO_LARGE", ""
    code, reason = row.get("code", "INVALID_ARGUMENT"), row.get("reason", "INVALID_FIELD")
    return code, reason, row.get("field", "")


# What only JSON can have wrong: the body, and what its refusal has as reason, field and message.
WRONG_JSON = [
    ("", "MALFORMED_MESSAGE", "", "line 1 column 1"),
    ("{", "MALFORMED_MESSAGE", "", "line 1 column 2"),
    ('{"queue": "q",\n "payloads": [}', "MALFORMED_MESSAGE", "", "line 2 column 15"),
    ("[]", "MALFORMED_MESSAGE", "", "must be a JSON object, not a list"),
    ("null", "MALFORMED_MESSAGE", "", "not null"),
    ("\ufeff{}", "MALFORMED_MESSAGE", "", "BOM"),
    ('{"queue": NaN}', "MALFORMED_MESSAGE", "", "NaN"),
    ('{"queue": "a", "queue": "b"}', "MALFORMED_MESSAGE", "", "queue"),
    ('{"queue": ' + "9" * 5_000 + "}", "MALFORMED_MESSAGE", "", "too long"),
    ('{"queue": ' + "[" * 100_000 + "}", "MALFORMED_MESSAGE", "", "nested too deep"),
    ('{"Queue": "q"}', "INVALID_FIELD", "Queue", "there is no such field"),
    ('{"jobs": [{}, {"option": {}}]}', "INVALID_FIELD", "jobs[1].option", "no such field"),
    ('{"ackLevel": 1, "ack_level": 1}', "INVALID_FIELD", "ack_level", "twice"),
    ('{"jobs": [{"text": "a", "data": "YQ=="}]}', "INVALID_FIELD", "jobs[0].data", "twice"),
    ('{"queue": 1}', "INVALID_FIELD", "queue", "must be a text, not a number"),
    ('{"queue": "\\ud800"}', "INVALID_FIELD", "queue", "surrogate"),
    ('{"payloads": ["YQ==", "!!!!"]}', "INVALID_FIELD", "payloads[1]", "base64"),
    ('{"payloads": ["Y"]}', "INVALID_FIELD", "payloads[0]", "base64"),
    ('{"payloads": [1]}', "INVALID_FIELD", "payloads[0]", "base64"),
    ('{"payloads": [null]}', "INVALID_FIELD", "payloads[0]", "not null"),
    ('{"payloads": "YQ=="}', "INVALID_FIELD", "payloads", "must be a list, not a text"),
    ('{"jobs": {}}', "INVALID_FIELD", "jobs", "must be a list, not an object"),
    ('{"jobs": [1.5]}', "INVALID_FIELD", "jobs[0]", "must be an object, not a number with"),
    ('{"options": {"headers": []}}', "INVALID_FIELD", "options.headers", "must be an object"),
    ('{"options": {"headers": {"a": 1}}}', "INVALID_FIELD", "options.headers[a]", "a text"),
    ('{"options": {"priority": 2147483648}}', "INVALID_FIELD", "options.priority", "2147483647"),
    ('{"options": {"priority": 1.5}}', "INVALID_FIELD", "options.priority", "whole number"),
    ('{"options": {"priority": true}}', "INVALID_FIELD", "options.priority", "whole number"),
    ('{"options": {"priority": "one"}}', "INVALID_FIELD", "options.priority", "whole number"),
    ('{"options": {"priority": 1e999}}', "INVALID_FIELD", "options.priority", "whole number"),
    ('{"atomic": "true"}', "INVALID_FIELD", "atomic", "true or false"),
    ('{"ackLevel": "FSYNCED"}', "INVALID_FIELD", "ack_level", "ACK_LEVEL_FSYNCED"),
    ('{"delay": 5}', "INVALID_FIELD", "delay", "1.5s"),
    ('{"delay": "5"}', "INVALID_FIELD", "delay", "1.5s"),
    ('{"runAt": "tomorrow"}', "INVALID_FIELD", "run_at", "2026-01-31T12:00:00Z"),
    ('{"a": ' + ",".join(['"x"'] * 3) + "}", "MALFORMED_MESSAGE", "", "column"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason", "field", "said"), WRONG_JSON)
async def test_wrong_json_names_its_place(
    both: Both, body: str, reason: str, field: str, said: str
) -> None:
    client, _, _ = both
    raw = body.encode(errors="surrogatepass")

    refusal = refusal_of(await post(client, "JobService/Push", raw))

    assert (refusal.code, refusal.reason, refusal.field) == ("INVALID_ARGUMENT", reason, field)
    assert said in refusal.message, refusal.message


async def test_a_body_that_is_not_utf_8_names_the_byte(both: Both) -> None:
    refusal = refusal_of(await post(both[0], "JobService/Push", b'{"queue": "\xff"}'))

    assert (refusal.reason, refusal.message) == (
        "MALFORMED_MESSAGE",
        "the body is not UTF-8, at byte 12",
    )


async def test_values_in_json_are_counted_before_they_are_parsed(both: Both) -> None:
    """Their field is named, whatever strings there are beside them."""
    values = ",".join(["[]"] * 400_000)
    body = f'{{"requestId": "a,\\",{{[", "header_columns": [{values}]}}'.encode()

    refusal = refusal_of(await post(both[0], "JobService/Push", body))

    found = (refusal.code, refusal.reason, refusal.field)
    assert found == ("RESOURCE_EXHAUSTED", "TOO_LARGE", "header_columns")


async def test_a_text_of_many_commas_is_one_value() -> None:
    """A document as a payload is not counted."""
    body = json.dumps({"queue": "q", "jobs": [{"text": "{,[" * 300_000}]}).encode()

    async with running_server() as server, client_of(server) as client:
        assert (await post(client, "JobService/Push", body)).status_code == 200
