"""The fact of the server itself. `entries` has the list of all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.server_notes import ServerNote


@dataclass(slots=True)
class ServerNoted:
    """Things happened to the server itself, in this order. It changes no state: it is in the
    journal so that watchers are told once it is on disk, and can resume after it.
    """

    at_ms: int
    notes: list[ServerNote]
