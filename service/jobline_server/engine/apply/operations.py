"""Applies the fact of an operation: it changes nothing here, and goes to the ended store."""

from __future__ import annotations

from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.endings import OperationNoted
from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.state import ShardState


def apply_operation_recorded(shard: ShardState, fact: OperationRecorded, _offset: int) -> None:
    """Has the operation kept."""
    shard.effects.append(OperationNoted(fact.operation))


APPLY: ApplyTable = {OperationRecorded: apply_operation_recorded}
