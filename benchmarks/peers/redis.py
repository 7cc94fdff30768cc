"""asynq and BullMQ, each on a Redis of its own: with a sync before each answer, and in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.peers.building import go_load, go_version, node_load, npm_version, said_version
from benchmarks.peers.peer import Command, Peer, Setup

ALWAYS = "`appendfsync always`"
MEMORY = "memory only (no file)"
ROWS = (("-always", ALWAYS), ("", MEMORY))

Load = Callable[[int], Sequence[str]]


def _serve(durability: str, data: Path, port: int) -> Command:
    words = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(data)]
    # No snapshots: a fork would share the core with what is measured.
    words += ["--save", "", "--maxmemory-policy", "noeviction"]
    if durability == ALWAYS:
        words += ["--appendonly", "yes", "--appendfsync", "always"]
    return Command(words, port)


def _redis() -> str:
    return f"Redis {said_version('redis-server', '--version')}"


def _setups(
    system: str, client: str, bulk: str, load: Load, drained: tuple[int, int]
) -> list[Setup]:
    """Both rows of a peer; `drained` by durability."""
    return [
        Setup(
            key=f"{system.lower()}{suffix}",
            system=system,
            durability=durability,
            client=client,
            bulk=bulk,
            serve=partial(_serve, durability),
            load=load,
            drained=jobs,
            synced=durability == ALWAYS,
        )
        for (suffix, durability), jobs in zip(ROWS, drained, strict=True)
    ]


ASYNQ = Peer(
    "asynq",
    ["redis", "go-loads"],
    lambda: f"{go_version('github.com/hibiken/asynq')} on {_redis()}",
    _setups("asynq", "Go", "", partial(go_load, "asynq"), (6_000, 30_000)),
)
BULLMQ = Peer(
    "bullmq",
    ["redis", "node-loads"],
    lambda: f"{npm_version('bullmq')} on {_redis()}",
    _setups(
        "BullMQ",
        "Node.js",
        "4 callers of 1,000 (`addBulk`)",
        partial(node_load, "node", "bullmq"),
        (40_000, 40_000),
    ),
)
