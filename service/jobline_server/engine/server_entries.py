"""The fact of the server itself. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ServerNoteKind(IntEnum):
    """What happened to the server itself; the numbers are those of the events."""

    WORKER_CONNECTED = 70
    WORKER_LOST = 71
    STORAGE_LOW = 72


@dataclass(frozen=True, slots=True)
class ServerNote:
    """One thing that happened, at a wall time. `worker` is "" if it concerns none, or several."""

    kind: ServerNoteKind
    at_ms: int
    worker: str
    message: str


@dataclass(slots=True)
class ServerNoted:
    """Things happened to the server itself, in this order. It changes no state: it is in the
    journal so that watchers are told once it is on disk, and can resume after it.
    """

    at_ms: int
    notes: list[ServerNote]
