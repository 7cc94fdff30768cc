"""Ageing between message and value."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine.ageing import Ageing
from jobline_server.wire.times import fill_time, milliseconds_of


def ageing_from_message(message: queue_pb2.Ageing) -> Ageing:
    """Returns the value of an Ageing message."""
    return Ageing(
        milliseconds_of(message.after),
        message.step if message.HasField("step") else 1,
        message.max if message.HasField("max") else None,
    )


def fill_ageing(message: queue_pb2.Ageing, ageing: Ageing) -> None:
    """Fills an Ageing message that is a field of another."""
    message.after.SetInParent()
    fill_time(message.after, ageing.after_ms)
    message.step = ageing.step
    if ageing.limit is not None:
        message.max = ageing.limit
