"""beanstalkd, with a sync of each write and without files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.building import go_load, said_version
from benchmarks.peers.peer import Command, Peer, Setup


def _serve(flags: Sequence[str], data: Path, port: int) -> Command:
    words = ["beanstalkd", "-l", "127.0.0.1", "-p", str(port)]
    return Command([*words, *flags, *(["-b", str(data)] if flags else [])], port)


def _setup(key: str, flags: Sequence[str], durability: str, drained: int) -> Setup:
    return Setup(
        key=key,
        system="beanstalkd",
        durability=durability,
        client="Go",
        bulk="16 callers of 1,000, pipelined",
        serve=lambda data, port: _serve(flags, data, port),
        load=lambda port: go_load("beanstalkd", port),
        drained=drained,
        synced=bool(flags),
    )


PEER = Peer(
    "beanstalkd",
    ["beanstalkd", "go-loads"],
    lambda: said_version("beanstalkd", "-v"),
    [
        _setup("beanstalkd-sync", ["-f", "0"], "fsync of each write (`-f 0`)", 10_000),
        _setup("beanstalkd", [], "memory only (no file)", 150_000),
    ],
)
