"""Fuzz over HTTP: JSON that is nearly a request, and the messages of test_wire_fuzz. No call is
answered with a code that says that the server does not know what happened, and none with a stack.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import httpx
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from jobline_server.testing import running_server
from tests.server import world
from tests.server.calling import method_of
from tests.server.conftest import connect
from tests.server.fuzz_cases import json_of
from tests.server.fuzzing import Maker
from tests.server.http_calls import JSON, PROTO, UNARY, client_of, post, refusal_of
from tests.server.test_wire_fuzz import BUGS
from tests.server.valid_requests import VALID

MESSAGES_PER_RPC = 100
AT_ONCE = 20


@pytest.fixture(scope="module")
async def fuzzed() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that all tests of this file throw bytes at."""
    async with running_server() as server, client_of(server) as client:
        async with connect(server.address) as channel:
            await world.fill(channel)
        yield client


@pytest.mark.parametrize("rpc", UNARY)
async def test_no_body_crashes_a_call(fuzzed: httpx.AsyncClient, rpc: str) -> None:
    random = Random(rpc)
    maker = Maker(random)
    good = ParseDict(VALID[rpc], GetMessageClass(method_of(rpc).input_type)())
    refused = 0

    async def call() -> str:
        as_json = random.random() < 0.7
        body = json_of(random, VALID[rpc]) if as_json else maker.fuzzed(good)
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
