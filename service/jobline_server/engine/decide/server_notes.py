"""Notes: what happened to the server itself."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.server_notes import ServerNote
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def decide_note_server(shard: ShardView, now: Now, notes: Sequence[ServerNote]) -> None:
    """Notes what happened to the server, all in one fact."""
    shard.emit(ServerNoted(now.wall_ms, list(notes)))
