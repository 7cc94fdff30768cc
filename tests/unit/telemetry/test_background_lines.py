"""A log that nobody reads stops nobody."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from jobline_server.telemetry import background_lines
from jobline_server.telemetry.background_lines import BackgroundLines

PIPE_BYTES = 4_096


class Pipe:
    """A small one: what is read from it, and the handler that writes to it."""

    def __init__(self) -> None:
        self.end, self.into = os.pipe()
        fcntl.fcntl(self.into, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.handler = BackgroundLines(self.into)

    def fill(self) -> None:
        """Leaves no room for another byte."""
        os.set_blocking(self.into, False)
        with suppress(BlockingIOError):
            while True:
                os.write(self.into, b".")
        os.set_blocking(self.into, True)

    def log(self, text: str, *values: object) -> None:
        """Has a line written."""
        self.handler.handle(logging.makeLogRecord({"msg": text, "args": values}))

    def read(self, until: str) -> str:
        """What is written up to a line that ends so."""
        found = ""
        while not found.endswith(f"{until}\n"):
            found += os.read(self.end, 65_536).decode()
        return found


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.end)
    os.close(made.into)


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    for number in range(100):
        pipe.log("line %d é", number)
    assert pipe.read("line 99 é").splitlines() == [f"line {number} é" for number in range(100)]
    pipe.handler.flush()


def test_who_logs_does_not_wait_for_who_reads(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out, counted, and said once there is room."""
    monkeypatch.setattr(background_lines, "WAITING_BYTES_MAX", 100_000)
    monkeypatch.setattr(background_lines, "FLUSH_SECONDS", 0.01)
    pipe.fill()
    for _ in range(200):
        pipe.log("x" * 999)
    pipe.handler.flush()
    left_out = pipe.handler._left_out
    assert left_out == 100
    written = 0
    while written < 100:  # not until nothing waits: the last one does while it is read
        written += os.read(pipe.end, 65_536).count(b"\n")
    pipe.log("last")
    note = f"{left_out} lines of the log were left out: nobody read it"
    assert pipe.read("last").splitlines()[-2:] == [note, "last"]


def test_a_descriptor_that_does_not_wait_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.into, False)
    for number in range(1_000):
        pipe.log("line %d", number)
    assert len(pipe.read("line 999").splitlines()) == 1_000


def test_a_log_that_is_closed_or_a_line_that_cannot_be_made_stops_nothing(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    pipe.log("%d", "no number")
    handler = BackgroundLines(-1)
    handler.handle(logging.makeLogRecord({"msg": "lost"}))
    handler.flush()
    assert not handler._bytes
    pipe.log("on")
    assert pipe.read("on") == "on\n"
