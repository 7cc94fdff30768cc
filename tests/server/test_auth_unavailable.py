"""An issuer whose keys cannot be fetched, over the wire: no call waits for long, keys that are
known go on, callers with API keys notice nothing, and the log stays short.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.auth import issuers
from jobline_server.testing import RunningServer, running_server
from tests.server import http_calls
from tests.server.access import api_key, auth_file, channel_of, channel_with, role
from tests.server.calling import Refusal, refusal_of
from tests.unit.auth.tokens import Issuer, issuer_lines

FILE = role("all", (["*"], ["push", "read"])) + api_key("root", "all")
PUSH = pb.PushRequest(queue="mail", payloads=[b"x"])
# In place of five: how long a fetch may take. A call may take this and what a busy machine adds.
FETCH_SECONDS = 0.5
CALL_SECONDS_MAX = FETCH_SECONDS + 4.5


class KeyServer:
    """Where an issuer lists its keys. `way`: answers, is silent, or says a byte now and then."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.way = "answers"
        self.asked = 0
        self.url = ""
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/keys"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self.asked += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            keys = self.issuer.jwks()
            reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(keys), keys)
            if self.way == "answers":
                writer.write(reply)
                await writer.drain()
                return
            for byte in reply if self.way == "dribbles" else b"":
                writer.write(bytes([byte]))
                await asyncio.sleep(0.05)  # slower than the time that a fetch has, in all
            await asyncio.Event().wait()
        finally:
            writer.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short time for a fetch; keys that are old at once; no pause between two fetches."""
    monkeypatch.setattr(issuers, "FETCH_SECONDS", FETCH_SECONDS)
    monkeypatch.setattr(issuers, "OLD_SECONDS", 0.0)


@pytest.fixture
async def keys() -> AsyncIterator[KeyServer]:
    async with KeyServer(Issuer()) as server:
        yield server


def settings(folder: Path, url: str) -> dict[str, Any]:
    """Of a server that takes tokens of the issuer."""
    lines = issuer_lines(f'jwks_url = "{url}"')
    return {"auth": auth_file(folder, FILE + lines), "data": folder / "data"}


def channel(server: RunningServer, keys: KeyServer, subject: str, **named: Any) -> aio.Channel:
    """A channel with a token of its own, which the server has not seen."""
    token = keys.issuer.token(sub=subject, **named)
    return channel_with(server.address, ("authorization", f"Bearer {token}"))


async def refused(given: aio.Channel) -> Refusal:
    """What a push is refused with, soon."""
    began = perf_counter()
    async with given:
        with pytest.raises(aio.AioRpcError) as caught:
            await JobServiceStub(given).Push(PUSH)
    assert perf_counter() - began < CALL_SECONDS_MAX
    return refusal_of(caught.value)


@pytest.mark.parametrize("way", ["is silent", "dribbles"])
async def test_no_call_waits_for_an_issuer_that_says_nothing(
    transport: str, tmp_path: Path, keys: KeyServer, way: str
) -> None:
    """Nor does the start. Whoever shows an API key is served meanwhile."""
    keys.way = way
    began = perf_counter()
    async with running_server(transport=transport, **settings(tmp_path, keys.url)) as server:
        assert perf_counter() - began < CALL_SECONDS_MAX
        for number in range(2):
            refusal = await refused(channel(server, keys, f"caller-{number}"))
            assert (refusal.code, refusal.reason) == ("UNAVAILABLE", "AUTH_UNAVAILABLE")
            assert keys.url not in refusal.message
        async with channel_of(server.address, "root") as root:
            await JobServiceStub(root).Push(PUSH)
        async with http_calls.client_of(server) as client:
            bearer = {"authorization": f"Bearer {keys.issuer.token(sub='over-http')}"}
            reply = await http_calls.post(client, "JobService/Push", b"{}", **bearer)
        assert reply.status_code == 503
        assert http_calls.refusal_of(reply).reason == "AUTH_UNAVAILABLE"


async def test_keys_that_are_known_go_on_while_nobody_answers(
    transport: str, tmp_path: Path, keys: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However old they are; only a key that is not among them has to wait, and is unknown then."""
    monkeypatch.setattr(issuers, "FETCH_PAUSE_SECONDS", 0.0)
    async with running_server(transport=transport, **settings(tmp_path, keys.url)) as server:
        keys.way = "is silent"
        # Renewed meanwhile, behind the calls: none waits for it, though a fetch takes as long.
        monkeypatch.setattr(issuers, "FETCH_SECONDS", 3_600.0)
        for number in range(5):
            async with channel(server, keys, f"caller-{number}") as known, asyncio.timeout(50):
                await JobServiceStub(known).Push(PUSH)
        assert keys.asked == 2  # at the start, and once since
    monkeypatch.setattr(issuers, "FETCH_SECONDS", FETCH_SECONDS)
    keys.way = "answers"
    async with running_server(
        transport=transport, **settings(tmp_path, keys.url) | {"data": tmp_path / "data-2"}
    ) as server:
        keys.way = "is silent"
        keys.issuer.rotate("rsa-2")
        refusal = await refused(channel(server, keys, "late", key_id="rsa-2"))
        assert refusal.reason == "TOKEN_UNKNOWN"


async def test_many_callers_leave_few_lines_and_one_fetch(
    transport: str, tmp_path: Path, keys: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that come together wait for the same one, and those after it for none."""
    lines: list[str] = []

    class Log:
        def warning(self, event: str, **_: object) -> None:
            lines.append(event)

    keys.way = "is silent"
    async with running_server(transport=transport, **settings(tmp_path, keys.url)) as server:
        monkeypatch.setattr(issuers, "LOG", Log())
        channels = [channel(server, keys, f"caller-{number}") for number in range(50)]
        refusals = await asyncio.gather(*(refused(one) for one in channels))
        assert {one.reason for one in refusals} == {"AUTH_UNAVAILABLE"}
    assert keys.asked <= 2
    assert len(lines) <= 1
