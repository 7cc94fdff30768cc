"""River on a PostgreSQL of its own, as Debian configures it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.peers.building import go_load, go_version, said_version
from benchmarks.peers.peer import CannotBuild, Command, Peer, Setup

CONNECTIONS = 80


def programs() -> Path:
    """The directory with PostgreSQL's programs, the newest version first."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for folder in [*debian, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists():
            return folder
    raise CannotBuild("PostgreSQL's initdb is not there: apt-get install postgresql")


def _serve(data: Path, port: int) -> Command:
    folder, store = programs(), str(data / "store")
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": str(2 * CONNECTIONS),
        "fsync": "on",
        "synchronous_commit": "on",
    }
    return Command(
        [
            *(str(folder / "postgres"), "-D", store),
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
        ],
        port,
        before=[str(folder / "initdb"), "-D", store, "--auth=trust", "--username=postgres"],
        # PostgreSQL refuses to run as root; Debian's package has made a user for it.
        user="postgres" if os.geteuid() == 0 else None,
    )


def address(port: int) -> str:
    """What the load connects to, and by how many connections."""
    return f"postgres://postgres@127.0.0.1:{port}/postgres?pool_max_conns={CONNECTIONS}"


def _version() -> str:
    river = go_version("github.com/riverqueue/river")
    return f"{river} on PostgreSQL {said_version(programs() / 'postgres', '--version')}"


PEER = Peer(
    "river",
    ["postgresql", "go-loads"],
    _version,
    [
        Setup(
            key="river",
            system="River",
            durability="fsync at commit (default)",
            client="Go",
            bulk="16 callers of 1,000 (`InsertManyFast`)",
            serve=_serve,
            load=lambda port: go_load("river", address(port)),
            drained=60_000,
            synced=True,
        )
    ],
)
