"""Fuzz over HTTP: JSON that is nearly a request, and the messages of test_wire_fuzz. No call is
answered with a code that says that the server does not know what happened, and none with a stack.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from random import Random
from typing import Any

import httpx
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from jobline_server.testing import running_server
from tests.server import world
from tests.server.calling import method_of
from tests.server.conftest import connect
from tests.server.fuzzing import Maker, mutated
from tests.server.http_calls import JSON, PROTO, UNARY, client_of, post, refusal_of
from tests.server.test_wire_fuzz import BUGS
from tests.server.valid_requests import VALID

MESSAGES_PER_RPC = 100
AT_ONCE = 20
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e300, 2**63, -(2**70), "", "x", "1", "-1", "1e3", "NaN", "Infinity",
    "1.5s", "-1s", "9" * 30 + "s", "2026-01-31T12:00:00Z", "0000-00-00T00:00:00Z", "2026-13-01T00Z",
    "a.b,c", "YQ==", "====", "\ud800", "\0", "é" * 300, [], [[]], [None], {}, {"": {}}, {"a": 1},
    ["x"] * 50, [{}] * 50, "x" * 70_000,
]  # fmt: skip


@pytest.fixture(scope="module")
async def fuzzed() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that all tests of this file throw bytes at."""
    async with running_server() as server, client_of(server) as client:
        async with connect(server.address) as channel:
            await world.fill(channel)
        yield client


def wrong_json(random: Random, good: Any) -> bytes:
    """JSON like a good request with something wrong in it, or bytes that are nearly JSON."""
    text = json.dumps(good)
    if random.random() < 0.3:
        return mutated(random, text.encode())
    value = json.loads(text)
    for _ in range(1 + random.randrange(2)):
        change(random, value)
    return json.dumps(value).encode()


def change(random: Random, value: Any) -> None:
    """Replaces, adds or removes one member, at any depth."""
    if isinstance(value, list) and value:
        place = random.randrange(len(value))
        if isinstance(value[place], (dict, list)) and random.random() < 0.7:
            change(random, value[place])
        else:
            value[place] = deepcopy(random.choice(VALUES))
    elif isinstance(value, dict):
        name = random.choice([*value, "unknown", "queue", "__class__", "pageSize"])
        if isinstance(value.get(name), (dict, list)) and random.random() < 0.6:
            change(random, value[name])
        elif random.random() < 0.2:
            value.pop(name, None)
        else:
            value[name] = deepcopy(random.choice(VALUES))


@pytest.mark.parametrize("rpc", UNARY)
async def test_no_body_crashes_a_call(fuzzed: httpx.AsyncClient, rpc: str) -> None:
    random = Random(rpc)
    maker = Maker(random)
    good = ParseDict(VALID[rpc], GetMessageClass(method_of(rpc).input_type)())
    refused = 0

    async def call() -> str:
        as_json = random.random() < 0.7
        body = wrong_json(random, VALID[rpc]) if as_json else maker.fuzzed(good)
        # Pulls may wait.
        reply = await post(fuzzed, rpc, body, JSON if as_json else PROTO, connect_timeout_ms="2000")
        code = "OK" if reply.status_code == 200 else refusal_of(reply).code
        assert code not in BUGS, (reply.text, body)
        return code

    for _ in range(0, MESSAGES_PER_RPC, AT_ONCE):
        codes = await asyncio.gather(*(call() for _ in range(AT_ONCE)))
        refused += sum(code != "OK" for code in codes)
    assert refused, "nothing was ever refused"
    assert (await fuzzed.get("/healthz")).status_code == 200
