"""Checks the objective of a queue."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine import objective as limits
from jobline_server.engine.commands import Refused
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields


def objective(message: queue_pb2.Objective, field: str) -> None:
    """Refuses an objective that is not allowed."""
    try:
        check_own_fields(message)
        fields.real(message.percent, "percent", limits.PERCENT_MIN, limits.PERCENT_MAX)
        shortest, longest = limits.START_WITHIN_MS_MIN, limits.START_WITHIN_MS_MAX
        fields.duration_ms(message.start_within, "start_within", shortest, longest)
    except Refused as refused:
        raise fields.within(field, refused) from None
