"""The process around a server: exit codes, the ready line, what it insists on."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.internal import api_implementation

from jobline_server import memory, serving
from jobline_server.app import Server
from jobline_server.config import ConfigurationError, Settings, load_settings
from jobline_server.notify import READY, notify
from jobline_server.serving import (
    EXIT_CANNOT_START,
    EXIT_STOPPED,
    EXIT_STORAGE_FAILED,
    serve_until_stopped,
)
from jobline_server.storage.sqlite.files import make_directory
from jobline_server.storage.store import StoreRefused
from jobline_server.testing.embedded import FOR_TESTS


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The collector stays as it is; signals do what they did."""
    monkeypatch.setattr(memory, "tune", lambda: None)
    monkeypatch.setattr(memory, "freeze", lambda: None)
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    yield
    for name, handler in handlers.items():
        signal.signal(name, handler)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a server on a directory of its own."""
    return load_settings({**FOR_TESTS, "data": tmp_path / "data"})


async def test_a_failed_disk_ends_the_process_with_1(settings: Settings) -> None:
    """Memory must not answer for a disk (G16)."""

    def fail(server: Server) -> None:
        server.runtime.core.commits.fail(OSError("input/output error"))

    assert await serve_until_stopped(settings, fail) == EXIT_STORAGE_FAILED


async def test_a_signal_ends_the_process_with_0(settings: Settings) -> None:
    """SIGTERM and SIGINT alike."""

    def stop(_server: Server) -> None:
        signal.raise_signal(signal.SIGINT)

    assert await serve_until_stopped(settings, stop) == EXIT_STOPPED


class Interrupted:
    """A server that gets SIGINT as it starts: before a wait, or after the last one."""

    addresses, http, scheme, transport = ("127.0.0.1:1",), "", "http", "grpcio"

    def __init__(self, _settings: Settings, *, is_late: bool) -> None:
        self.is_late = is_late
        self.steps: list[str] = []

    async def start(self) -> None:
        signal.raise_signal(signal.SIGINT)
        if not self.is_late:
            await asyncio.sleep(60)
        self.failed = asyncio.get_running_loop().create_future()
        self.steps.append("started")

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.steps.append("stopped")

    def with_core(self, _call: object) -> None:
        pass

    def hasten(self) -> None:
        pass


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("uvloop", [False, True])
def test_an_interrupt_of_the_start_ends_the_process(
    tmp_path: Path, *, is_late: bool, uvloop: bool
) -> None:
    """With a traceback it was, and after the last wait of the start never: the server went on
    without a loop, in threads that nobody stopped.
    """
    settings = load_settings({**FOR_TESTS, "data": tmp_path / "data", "uvloop": uvloop})
    made: list[Interrupted] = []

    def make(given: Settings) -> Any:
        made.append(Interrupted(given, is_late=is_late))
        return made[0]

    code = serving.run(settings, lambda _: None, make=make)

    assert (code, made[0].steps) == ((0, ["started", "stopped"]) if is_late else (130, []))


async def test_a_start_that_fails_ends_the_process_with_2(tmp_path: Path) -> None:
    """The directory is a file."""
    (tmp_path / "data").write_text("not a directory")
    settings = load_settings({**FOR_TESTS, "data": tmp_path / "data"})

    assert await serve_until_stopped(settings, lambda _: None) == EXIT_CANNOT_START


@pytest.mark.parametrize("data", ["data", "data/below"])
def test_a_directory_that_cannot_be_is_said_in_words(tmp_path: Path, data: str) -> None:
    """Without the numbers of an operating system."""
    (tmp_path / "data").write_text("not a directory")

    with pytest.raises(StoreRefused, match=r"data cannot be made a directory: file exists$"):
        make_directory(tmp_path / data)


async def test_the_ready_line_says_where_it_is_reached(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line of JSON on stdout."""

    def announce(server: Server) -> None:
        serving.print_ready(server)
        signal.raise_signal(signal.SIGTERM)

    await serve_until_stopped(settings, announce)

    line: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert line["event"] == "ready"
    assert line["grpc"].startswith("127.0.0.1:")
    assert not line["grpc"].endswith(":0")
    assert line["http"].startswith("127.0.0.1:")


@pytest.mark.parametrize("kind", ["file", "abstract"])
async def test_a_supervisor_is_told_ready_and_stopping(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Trial D13: READY=1 once it serves, STOPPING=1 when it is told to stop, as systemd's
    `Type=notify` asks."""
    name = f"jobline-{os.getpid()}-{kind}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / name) if kind == "file" else f"\0{name}")
        listener.setblocking(False)
        address = str(tmp_path / name) if kind == "file" else f"@{name}"
        monkeypatch.setenv("NOTIFY_SOCKET", address)

        def stop(_server: Server) -> None:
            signal.raise_signal(signal.SIGTERM)

        assert await serve_until_stopped(settings, stop) == EXIT_STOPPED
        assert [listener.recv(64), listener.recv(64)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.parametrize("address", ["", "relative", "/nobody/listens/here"])
def test_without_a_supervisor_nobody_is_told(address: str) -> None:
    """Trial D13: and that is no failure."""
    assert not notify(READY, {"NOTIFY_SOCKET": address})


def test_on_a_terminal_it_says_ready_once_in_words(tmp_path: Path) -> None:
    """Trial D9: two lines of JSON, and a log of JSON, are for programs."""
    main, side = os.openpty()
    command = [sys.executable, "-m", "jobline_server", f"--data={tmp_path / 'data'}"]
    process = subprocess.Popen(
        [*command, "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--ballast-bytes=0"],
        stdout=side,
        stderr=side,
    )
    os.close(side)
    try:
        said = b""
        while b"ready" not in said:
            said += os.read(main, 4_096)
        process.send_signal(signal.SIGTERM)
        with suppress(OSError):  # the other side is closed at the end
            while read := os.read(main, 4_096):
                said += read
        assert process.wait(20) == EXIT_STOPPED
    finally:
        process.kill()
        os.close(main)
    text = said.decode()
    assert re.search(r"^Jobline \S+ is ready at 127\.0\.0\.1:\d+, http://\S+; \^C stops it", text)
    assert text.count("ready") == 1
    assert "{" not in text


def test_the_slow_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every target would be out of reach."""
    monkeypatch.setattr(api_implementation, "Type", lambda: "python")

    with pytest.raises(ConfigurationError, match="upb"):
        serving.check_protobuf()
