"""Applies the fact of the server itself: it changes nothing."""

from __future__ import annotations

from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.server_entries import ServerNoted
from jobline_server.engine.state import ShardState


def apply_server_noted(_shard: ShardState, _fact: ServerNoted, _offset: int) -> None:
    """Changes nothing: watchers alone are told."""


APPLY: ApplyTable = {ServerNoted: apply_server_noted}
