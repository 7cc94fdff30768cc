"""Checks how jobs of a queue age."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields


def ageing(message: queue_pb2.Ageing, field: str) -> None:
    """Refuses ageing that is not allowed."""
    try:
        check_own_fields(message)
        shortest, longest = limits.AGEING_AFTER_MS_MIN, limits.AGEING_AFTER_MS_MAX
        fields.duration_ms(message.after, "after", shortest, longest)
        if message.HasField("step"):
            fields.integer(message.step, "step", 1, limits.AGEING_STEP_MAX)
        if message.HasField("max"):
            fields.integer(message.max, "max", 1, limits.AGEING_STEP_MAX)
    except Refused as refused:
        raise fields.within(field, refused) from None
