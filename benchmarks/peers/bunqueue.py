"""bunqueue: SQLite behind a TCP server, on Bun. Its `durable` writes at once and leaves the sync to
SQLite's `synchronous=NORMAL`, which syncs at checkpoints alone.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.building import BUN, NODE, node_load, npm_version, said_version
from benchmarks.peers.peer import Command, Peer, Setup

SERVER = NODE / "node_modules" / "bunqueue" / "dist" / "cli" / "index.js"


def _serve(data: Path, port: int) -> Command:
    # Its HTTP port is of no use here; 0 lets the system choose one.
    words = [str(BUN), str(SERVER), "start", "--tcp-port", str(port), "--http-port", "0"]
    return Command([*words, "--host", "127.0.0.1", "--data-path", str(data / "bunq.db")], port)


def _setup(key: str, durability: str, variant: str) -> Setup:
    return Setup(
        key=key,
        system="bunqueue",
        durability=durability,
        client="Bun",
        bulk="4 callers of 1,000 (`addBulk`)",
        serve=_serve,
        load=lambda port: node_load(str(BUN), "bunqueue", port, variant),
        drained=10_000,
        # It syncs at SQLite's checkpoints alone, `durable` or not.
        synced=False,
    )


PEER = Peer(
    "bunqueue",
    ["node-loads"],
    lambda: f"{npm_version('bunqueue')} on Bun {said_version(BUN, '--version')}",
    [
        _setup("bunqueue-durable", "SQLite, `durable: true`", "durable"),
        _setup("bunqueue", "SQLite, buffered (default)", ""),
    ],
)
