"""Ports of the native transport: what each counts as its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from jobline_server.rpc.admission import Admission
from jobline_server.rpc.overload import Count, Lateness
from jobline_server.rpc.transport import channel_options

native = pytest.importorskip("jobline_server.rpc.native")

POLL, CALL, ACK = "/a.B/Poll", "/a.B/Call", "/a.B/Ack"


async def make_call(channel: aio.Channel, path: str, raw: bytes = b"") -> None:
    """Makes a call to its end."""
    call: Any = channel.unary_unary(path)
    await call(raw)


async def test_long_polls_of_another_port_are_not_taken_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor those over HTTP: a port would find its own calls to be fewer than none, and no overload.
    Its own are left out, as they only wait.
    """
    admission, counted = Admission(), list[int]()
    waiting, may_end = asyncio.Semaphore(0), asyncio.Event()

    async def poll(_raw: bytes, _context: object) -> bytes:
        with admission.pulls.admitted():
            waiting.release()
            await may_end.wait()
        return b""

    async def call(_raw: bytes, _context: object) -> bytes:
        return b""

    def begins(_overload: object, _lateness: Lateness, _came: float, open_calls: Count) -> bool:
        counted.append(open_calls())
        return False

    monkeypatch.setattr("jobline_server.rpc.overload.Overload.begins", begins)
    answers = {POLL: poll, CALL: call}
    options: dict[str, Any] = dict(channel_options(1 << 20))
    paths = [f"unix:{tmp_path}/{name}" for name in ("one", "two")]
    ports = [native.NativePort(path, answers, options, admission) for path in paths]
    for port in ports:
        port.start(tmp_path / "none")
    async with aio.insecure_channel(paths[0]) as one, aio.insecure_channel(paths[1]) as two:
        over_http = asyncio.create_task(poll(b"", None))
        polls = [asyncio.create_task(make_call(one, POLL)) for _ in range(3)]
        for _ in range(4):
            await waiting.acquire()
        counted.clear()
        for channel in (one, two):
            await make_call(channel, CALL)
        assert counted == [1, 1]
        may_end.set()
        await asyncio.gather(over_http, *polls)
        await make_call(one, CALL)
        assert counted[2:] == [1]
    for port in ports:
        await port.end_calls(1.0)
        await port.close()


async def test_a_call_that_is_given_up_while_it_waits_is_never_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller knows nothing of what it would do; those behind it are served."""
    served: list[bytes] = []
    came, gone = asyncio.Event(), asyncio.Event()

    async def call(raw: bytes, _context: object) -> bytes:
        served.append(raw)
        return b""

    def begins(_overload: object, _lateness: Lateness, _came: float, open_calls: Count) -> bool:
        (came if open_calls() else gone).set()
        return False

    monkeypatch.setattr("jobline_server.rpc.overload.Overload.begins", begins)
    path = f"unix:{tmp_path}/one"
    port = native.NativePort(path, {CALL: call}, dict(channel_options(1 << 20)), Admission())
    port._others._places = 0
    port.start(tmp_path / "none")
    async with aio.insecure_channel(path) as channel:
        given_up = asyncio.create_task(make_call(channel, CALL, b"given up"))
        await came.wait()
        given_up.cancel()
        await gone.wait()
        port._others._places = 1
        await make_call(channel, CALL, b"last")
    assert served == [b"last"]
    await port.end_calls(1.0)
    await port.close()


async def test_settles_that_wait_are_served_at_a_stop(tmp_path: Path) -> None:
    """They are the last that a worker says; what else waits may go elsewhere."""
    served: list[bytes] = []

    async def answer(raw: bytes, _context: object) -> bytes:
        served.append(raw)
        return b""

    path, answers = f"unix:{tmp_path}/one", {ACK: answer, CALL: answer}
    port = native.NativePort(path, answers, dict(channel_options(1 << 20)), Admission())
    lines = port._settles, port._others
    for line in lines:
        line._places = line._at_once = 0
    port.start(tmp_path / "none")
    async with aio.insecure_channel(path) as channel:
        calls = [asyncio.create_task(make_call(channel, each, each.encode())) for each in answers]
        async with asyncio.timeout(10):
            while not all(map(len, lines)):  # noqa: ASYNC110  # no event says so
                await asyncio.sleep(0)
        ending = asyncio.create_task(port.end_calls(10.0))
        await asyncio.sleep(0)
        port._settles._places = port._settles._at_once = 1
        port._settles.go_on()
        await ending
        acked, other = await asyncio.gather(*calls, return_exceptions=True)
    assert acked is None
    assert isinstance(other, aio.AioRpcError)
    assert other.code() is grpc.StatusCode.UNAVAILABLE
    assert served == [ACK.encode()]
    await port.close()
