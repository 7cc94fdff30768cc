"""The process around a server: exit codes, the ready line, what it insists on."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.internal import api_implementation

from jobline_server import memory, serving
from jobline_server.app import Server
from jobline_server.config import ConfigurationError, Settings, load_settings
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


def test_the_slow_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every target would be out of reach."""
    monkeypatch.setattr(api_implementation, "Type", lambda: "python")

    with pytest.raises(ConfigurationError, match="upb"):
        serving.check_protobuf()
