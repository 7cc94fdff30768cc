"""asynq and BullMQ, each on a Redis of its own: with a sync before each answer, and in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.building import GO_LOADS, NODE, go_version, npm_version, said_version
from benchmarks.peers.peer import Command, Peer, Setup

ALWAYS = "`appendfsync always`"
MEMORY = "memory only (no file)"


def _serve(durability: str, data: Path, port: int) -> Command:
    words = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(data)]
    # No snapshots: a fork would share the core with what is measured.
    words += ["--save", "", "--maxmemory-policy", "noeviction"]
    if durability == ALWAYS:
        words += ["--appendonly", "yes", "--appendfsync", "always"]
    return Command(words, port)


def _redis() -> str:
    return f"Redis {said_version('redis-server', '--version')}"


def _asynq_load(port: int) -> Sequence[str]:
    return [str(GO_LOADS), "-peer", "asynq", "-address", f"127.0.0.1:{port}"]


def _asynq(key: str, durability: str, drained: int) -> Setup:
    return Setup(
        key=key,
        system="asynq",
        durability=durability,
        client="Go",
        bulk="",
        serve=lambda data, port: _serve(durability, data, port),
        load=_asynq_load,
        drained=drained,
        synced=durability == ALWAYS,
    )


def _bullmq_load(port: int) -> Sequence[str]:
    return ["node", str(NODE / "main.js"), "-peer", "bullmq", "-address", f"127.0.0.1:{port}"]


def _bullmq(key: str, durability: str, drained: int) -> Setup:
    return Setup(
        key=key,
        system="BullMQ",
        durability=durability,
        client="Node.js",
        bulk="4 callers of 1,000 (`addBulk`)",
        serve=lambda data, port: _serve(durability, data, port),
        load=_bullmq_load,
        drained=drained,
        synced=durability == ALWAYS,
    )


ASYNQ = Peer(
    "asynq",
    ["redis", "go-loads"],
    lambda: f"{go_version('github.com/hibiken/asynq')} on {_redis()}",
    [_asynq("asynq-always", ALWAYS, 6_000), _asynq("asynq", MEMORY, 30_000)],
)
BULLMQ = Peer(
    "bullmq",
    ["redis", "node-loads"],
    lambda: f"{npm_version('bullmq')} on {_redis()}",
    [_bullmq("bullmq-always", ALWAYS, 40_000), _bullmq("bullmq", MEMORY, 40_000)],
)
