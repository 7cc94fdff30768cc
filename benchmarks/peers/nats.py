"""NATS JetStream: a stream that is a work queue, at its default sync interval and at `always`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.building import BIN, go_load, go_version, said_version
from benchmarks.peers.peer import Command, Peer, Setup

SERVER = BIN / "nats-server"
CONFIGURATION = """\
listen: "127.0.0.1:{port}"
jetstream {{
  store_dir: "{store}"
  max_file_store: 100GB
  sync_interval: {sync}
}}
"""


def _serve(sync: str, data: Path, port: int) -> Command:
    path = data / "nats.conf"
    path.write_text(CONFIGURATION.format(port=port, store=data / "store", sync=sync))
    return Command([str(SERVER), "-c", str(path)], port)


def _version() -> str:
    return (
        f"{said_version(SERVER, '--version')}, nats.go {go_version('github.com/nats-io/nats.go')}"
    )


def _setup(key: str, sync: str, durability: str, bulk: str, drained: int) -> Setup:
    variant = "atomic" if "atomic" in bulk else ""
    return Setup(
        key=key,
        system="NATS JetStream",
        durability=durability,
        client="Go",
        bulk=bulk,
        serve=lambda data, port: _serve(sync, data, port),
        load=lambda port: go_load("nats", port, variant),
        drained=drained,
        synced=sync == "always",
    )


PEER = Peer(
    "nats",
    ["nats-server", "go-loads"],
    _version,
    [
        _setup(
            "nats-always", "always", "`sync_interval: always`", "16 atomic batches of 1,000", 6_000
        ),
        _setup(
            "nats", "2m", "fsync every 2 min (default)", "16 callers of 1,000 publishes", 400_000
        ),
    ],
)
