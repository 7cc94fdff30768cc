"""Records what operators did."""

from __future__ import annotations

from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.operations import Operation
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def decide_record_operation(shard: ShardView, now: Now, operation: Operation) -> None:
    """Records an operation, in the commit of what was decided just before."""
    shard.emit(OperationRecorded(now.wall_ms, operation))
