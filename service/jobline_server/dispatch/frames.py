"""The frames of a worker stream, in both directions, as plain values.

`rpc` converts them to messages and back; `Session` handles them.
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
    """A worker's description of itself."""

    id: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""
    language: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Handler:
    """A queue and name that a worker handles; `any_name`: all names of the queue that it announces
    no other handler for. Schemas are JSON, or "".
    """

    queue: str
    name: str
    payload_schema: str = ""
    result_schema: str = ""
    any_name: bool = False


@dataclass(frozen=True, slots=True)
class Open:
    """The first frame of a stream. `queues` are (name, weight); no `handlers` means any name."""

    worker: Worker
    queues: tuple[tuple[str, int], ...]
    handlers: tuple[Handler, ...] = ()
    lease_ms: int | None = None
    session: str = ""
    accepts_runs: bool = False
    message_bytes_max: int = limits.MESSAGE_BYTES_DEFAULT


@dataclass(slots=True)
class Settle:
    """Settles sent together under the number `seq`. Outcomes are indexed over `ack_ids` (packed
    ones first, then those with a result), then `fails`, then `releases`. `results`: id → result.
    """

    seq: int = 0
    ack_ids: list[int] = field(default_factory=list)
    ack_deliveries: list[int] = field(default_factory=list)
    results: dict[int, bytes] = field(default_factory=dict)
    fails: list[FailItem] = field(default_factory=list)
    releases: list[ReleaseItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Window:
    """The limits of a worker's unfinished jobs and payload bytes; 0 jobs pauses deliveries."""

    jobs: int
    payload_bytes: int = limits.WINDOW_BYTES_DEFAULT


@dataclass(slots=True)
class WorkerFrame:
    """A frame from a worker; its parts are handled in this order."""

    open: Open | None = None
    settles: list[Settle] = field(default_factory=list)
    extends: list[ExtendItem] = field(default_factory=list)
    window: Window | None = None
    drain: bool = False


class Confirm(NamedTuple):
    """The reply to the settle `seq`, after its commit: the outcomes that are not DONE, and the
    indexes of the fails whose jobs are DEAD now.
    """

    seq: int
    exceptions: NotDone
    dead: Sequence[int] = ()


@dataclass(slots=True)
class Opened:
    """The reply to `open`, with the leases that a resumed session still holds."""

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
    """A frame from the server; an empty one is a heartbeat. `revokes` are (id, delivery, reason);
    `unhandled` counts waiting jobs by (queue, name).
    """

    opened: Opened | None = None
    confirms: list[Confirm] = field(default_factory=list)
    revokes: list[tuple[int, int, RevokeReason]] = field(default_factory=list)
    leased: list[Leased] = field(default_factory=list)
    goaway: Goaway | None = None
    unhandled: dict[tuple[str, str], int] = field(default_factory=dict)
