"""What a peer is: how it is built, served and loaded; and one row of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Load(StrEnum):
    """The columns of the table, in the order in which they are measured."""

    SINGLE = "single"
    MANY = "many"
    DRAIN = "drain"
    BULK = "bulk"


class CannotBuild(Exception):
    """A peer is not to be had on this machine."""


class CannotMeasure(Exception):
    """A server or a load did not do what it was meant to."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a server is started. `port` is where it listens; `before` runs first, and ends by itself;
    `user` is who runs both.
    """

    words: Sequence[str]
    port: int
    before: Sequence[str] = ()
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A row: a peer at one durability.

    - `durability`: the state of a push when it was answered, as configured; `synced`: whether that
      is on disk.
    - `client`: what the load is made of. `bulk`: how many jobs are pushed at once; "": it cannot.
    - `serve`: makes the server's command, of a data directory that is empty and a free port.
    - `load`: makes the words of the program that puts a load on a port.
    - `drained`: how many jobs a drain has.
    """

    key: str
    system: str
    durability: str
    client: str
    bulk: str
    serve: Callable[[Path, int], Command]
    load: Callable[[int], Sequence[str]]
    drained: int
    synced: bool

    @property
    def loads(self) -> list[Load]:
        """The columns that this row has a figure in."""
        return [load for load in Load if load is not Load.BULK or self.bulk]


@dataclass(frozen=True, slots=True)
class Peer:
    """A system. `tools` are the words of `scripts/peers_tools.sh` that bring its programs, and
    `version` asks these.
    """

    name: str
    tools: Sequence[str]
    version: Callable[[], str]
    setups: Sequence[Setup]


@dataclass(slots=True)
class Row:
    """What was measured of a setup: jobs a second by load, and syncs a push that strace counted;
    None where there is no strace. `failed` says why there is nothing.
    """

    key: str
    system: str
    durability: str
    client: str
    bulk: str
    synced: bool
    version: str = ""
    rates: dict[str, float] = field(default_factory=dict)
    syncs: float | None = None
    failed: str = ""

    @classmethod
    def of(cls, setup: Setup) -> Row:
        """A row without figures."""
        return cls(
            setup.key, setup.system, setup.durability, setup.client, setup.bulk, setup.synced
        )

    @property
    def is_synced(self) -> bool:
        """Whether each push was to be on disk when it was answered, and strace saw it synced. A
        server that syncs all the time, but after its answers, is none.
        """
        return self.synced and self.syncs is not None and self.syncs >= SYNCED


# Some pushes may have shared a sync with what came before the count.
SYNCED = 0.95
