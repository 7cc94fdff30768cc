"""Facts of queues that come, change and go. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.values import QueueSettings


@dataclass(slots=True)
class QueueChanged:
    """A queue has these settings now. `created_number` is its number if it is new, else 0."""

    at_ms: int
    queue: str
    settings: QueueSettings
    created_number: int = 0


@dataclass(slots=True)
class QueuePaused:
    """Nothing of this queue is handed out from now on."""

    at_ms: int
    queue: str
    principal: str
    reason: str


@dataclass(slots=True)
class QueueResumed:
    """This queue is handed out again."""

    at_ms: int
    queue: str


@dataclass(slots=True)
class QueueDeleted:
    """A queue is gone, with all its jobs, live and ended."""

    at_ms: int
    queue: str
