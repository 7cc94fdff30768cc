"""Frames: what a worker stream carries each way, as plain values.

The shell turns them into messages and back; the session gives them their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, FailItem, Leased, NotDone, ReleaseItem
from jobline_server.engine.values import RevokeReason


@dataclass(frozen=True, slots=True)
class Worker:
    """Who a worker says it is."""

    id: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    language: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """A kind of work that a worker can do; the schemas are shown to operators and mean nothing
    here.
    """

    queue: str
    name: str
    payload_schema: str = ""
    result_schema: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """The first thing on a stream. `queues` are (name, weight); no `handlers` means any name."""

    worker: Worker
    queues: tuple[tuple[str, int], ...]
    handlers: tuple[Handler, ...] = ()
    lease_ms: int | None = None
    session: str = ""
    accepts_runs: bool = False
    message_bytes_max: int = limits.MESSAGE_BYTES_DEFAULT


@dataclass(slots=True)
class Settle:
    """Settles of one number. Outcomes are indexed over `ack_ids` (packed ones first, then those
    with a result in `results`, which holds id → result), then `fails`, then `releases`.
    """

    seq: int = 0
    ack_ids: list[int] = field(default_factory=list)
    ack_deliveries: list[int] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)
    fails: list[FailItem] = field(default_factory=list)
    releases: list[ReleaseItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Window:
    """How much a worker wants unfinished at any time; absolute, 0 jobs pauses."""

    jobs: int
    payload_bytes: int = limits.WINDOW_BYTES_DEFAULT


@dataclass(slots=True)
class WorkerFrame:
    """From a worker; its parts are handled in this order."""

    open: Open | None = None
    settles: list[Settle] = field(default_factory=list)
    extends: list[ExtendItem] = field(default_factory=list)
    window: Window | None = None
    drain: bool = False


class Confirm(NamedTuple):
    """Answers the settle `seq` after its commit: the outcomes that are not DONE, and the indexes of
    its fails whose jobs are DEAD now.
    """

    seq: int
    exceptions: NotDone
    dead: Sequence[int] = ()


@dataclass(slots=True)
class Opened:
    """The answer to `open`, and what a resumed session still holds."""

    session: str
    heartbeat_ms: int
    resumed: bool = False
    held_ids: list[int] = field(default_factory=list)
    held_deliveries: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Goaway:
    """Asks the worker to open another stream; `close_ms` is wall time."""

    reason: str
    close_ms: int
    retry_delay_ms: int


@dataclass(slots=True)
class ServerFrame:
    """From the server; empty, it is a heartbeat. `revokes` are (id, delivery, why); `unhandled` is
    how many jobs wait, by queue and name.
    """

    opened: Opened | None = None
    confirms: list[Confirm] = field(default_factory=list)
    revokes: list[tuple[int, int, RevokeReason]] = field(default_factory=list)
    leased: list[Leased] = field(default_factory=list)
    goaway: Goaway | None = None
    unhandled: dict[tuple[str, str], int] = field(default_factory=dict)
