"""Jobline itself: both transports, through the Go client and the Python client."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.bench import server_flags
from benchmarks.peers.building import go_load
from benchmarks.peers.peer import Command, Peer, Setup

SYNCED = "fsync before the answer"
BUFFERED = "written, fsync later (`BUFFERED`)"


def _serve(transport: str, data: Path, port: int) -> Command:
    flags = server_flags(data / "store", transport, f"127.0.0.1:{port}")
    words = [word for pair in flags.items() for word in pair if word is not None]
    return Command([sys.executable, "-m", "jobline_server", *words], port)


def _python(port: int) -> Sequence[str]:
    return [sys.executable, "-m", "benchmarks.peers.python_load", "-address", f"127.0.0.1:{port}"]


def _setup(transport: str, client: str, drained: int, variant: str = "") -> Setup:
    how = f"-{variant}" if variant else ""
    return Setup(
        key=f"jobline-{transport}-{client.lower()}{how}",
        system=f"Jobline, {transport}, {client} client",
        durability=BUFFERED if variant else SYNCED,
        client=client,
        bulk="16 callers of 1,000",
        serve=lambda data, port: _serve(transport, data, port),
        load=_python if client == "Python" else lambda port: go_load("jobline", port, variant),
        drained=drained,
        synced=not variant,
    )


PEER = Peer(
    "jobline",
    ["go-loads"],
    lambda: version("jobline-server"),
    [
        _setup("native", "Go", 1_000_000),
        _setup("native", "Python", 400_000),
        _setup("grpcio", "Go", 1_000_000),
        _setup("grpcio", "Python", 400_000),
        _setup("native", "Go", 1_000_000, "buffered"),
    ],
)
