"""The health port of a worker, asked over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time

import pytest

from jobline import InvalidArgument, Retry, Worker
from jobline._worker import health, health_server
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import COMPLETED, SCHEDULED
from tests.client.live.working import working


def ask(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


async def test_it_says_ok_and_counts(tiny):
    worker = Worker(tiny.address, health_port=0)

    @worker.handler("q", "mail")
    async def handle(payload, context):
        if context.attempt == 1 and payload == b"again":
            raise Retry(0)

    tiny.push("q", b"", b"again", name="mail")
    assert worker.health_address == ""
    async with working(worker) as serving:
        await tiny.until(lambda: tiny.jobs(SCHEDULED))
        tiny.store.promote()
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
        address = worker.health_address
        assert address.startswith("127.0.0.1:")
        assert await in_thread(ask, address, "/healthz") == (200, '{"status": "ok"}')
        status, text = await in_thread(ask, address, "/metrics")
        assert (await in_thread(ask, address, "/other"))[0] == 404
        assert (await in_thread(ask, address, "/healthz", "POST"))[0] == 405
        worker.stop()
        await serving
    lines = text.splitlines()
    assert status == 200
    for line in (
        "jobline_worker_up 1",
        "jobline_worker_slots 16",
        'jobline_worker_settled_jobs_total{outcome="completed"} 2',
        'jobline_worker_settled_jobs_total{outcome="retried"} 1',
        'jobline_worker_handler_seconds_count{name="mail"} 3',
    ):
        assert line in lines
    with pytest.raises(ConnectionRefusedError):
        await in_thread(ask, address, "/healthz")


async def test_a_blocked_loop_is_reported_while_it_is_blocked(tiny, monkeypatch):
    """The thread of the port does not need the loop."""
    monkeypatch.setattr(health, "LOOP_BLOCKED_SECONDS", 0.2)
    monkeypatch.setattr(health_server, "BEAT_SECONDS", 0.01)
    worker = Worker(tiny.address, health_port=0)
    answers: list[tuple[int, str]] = []
    blocked, asked = threading.Event(), threading.Event()

    @worker.handler("q")
    async def block(payload):
        blocked.set()
        asked.wait(20)

    def ask_until_unhealthy() -> None:
        blocked.wait()
        while not answers or answers[-1][0] == 200:
            answers.append(ask(worker.health_address, "/healthz"))
        asked.set()

    async with working(worker):
        thread = threading.Thread(target=ask_until_unhealthy)
        thread.start()
        tiny.push("q", b"")
        await tiny.until(lambda: tiny.jobs(COMPLETED))
        thread.join()
    assert json.loads(answers[-1][1])["reasons"] == ["LOOP_BLOCKED"]


async def test_a_stream_that_is_down_for_long_is_reported(monkeypatch):
    monkeypatch.setattr(health, "STREAM_DOWN_SECONDS", 0.05)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        worker = Worker(f"127.0.0.1:{nobody.getsockname()[1]}", health_port=0)
        worker.handler("q")(print)
        serving = asyncio.create_task(worker.serve())
        answer = 200, ""
        end = time.monotonic() + 20
        while answer[0] == 200 and time.monotonic() < end:
            await asyncio.sleep(0.02)
            if worker.health_address:
                answer = await in_thread(ask, worker.health_address, "/healthz")
        worker.stop()
        await serving
    assert json.loads(answer[1])["reasons"] == ["STREAM_DOWN"]


async def test_a_port_that_is_taken_is_refused_in_words(tiny):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        worker = Worker(tiny.address, health_port=taken.getsockname()[1])
        worker.handler("q")(print)
        with pytest.raises(InvalidArgument, match=r"^health_port: cannot listen on 127") as refused:
            await worker.serve()
    assert refused.value.field == "health_port"
    assert "another program listens there" in refused.value.message
    assert "Errno" not in refused.value.message


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "256.1.1.1"])
async def test_a_host_that_is_not_here_is_refused_in_words(tiny, host):
    worker = Worker(tiny.address, health_port=0, health_host=host)
    worker.handler("q")(print)
    with pytest.raises(InvalidArgument, match=rf"^health_port: cannot listen on {host}:0 \(") as no:
        await worker.serve()
    assert no.value.field == "health_port"
    assert "Errno" not in no.value.message


async def test_slow_callers_keep_nobody_else_out_for_long(tiny, monkeypatch):
    """There are places for some; who says nothing loses its place."""
    monkeypatch.setattr(health_server, "CALLERS_MAX", 2)
    worker = Worker(tiny.address, health_port=0)
    worker.handler("q")(print)
    async with working(worker):
        host, port = worker.health_address.split(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(3)]
        assert await in_thread(silent[2].recv, 1) == b""  # one too many
        for one in silent:
            one.close()
        status = 0
        while status != 200:
            try:
                status, _ = await in_thread(ask, worker.health_address, "/healthz")
            except (OSError, http.client.HTTPException):
                await asyncio.sleep(0.01)


async def test_a_caller_that_says_a_byte_now_and_then_loses_its_place(tiny, monkeypatch):
    monkeypatch.setattr(health_server, "REQUEST_SECONDS", 0.3)
    worker = Worker(tiny.address, health_port=0)
    worker.handler("q")(print)

    def say_slowly() -> float:
        host, port = worker.health_address.split(":")
        began = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=0.05) as caller:
            while time.monotonic() - began < 10:
                try:
                    caller.sendall(b"x")
                    if caller.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
        return time.monotonic() - began

    async with working(worker):
        assert await in_thread(say_slowly) < 5
