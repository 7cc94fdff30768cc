"""Notes: what happened to the server itself."""

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
