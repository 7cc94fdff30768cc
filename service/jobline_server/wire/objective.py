"""Objectives between message and value."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine.objective import Objective
from jobline_server.wire.times import fill_time, milliseconds_of


def objective_from_message(message: queue_pb2.Objective) -> Objective:
    """Returns the value of an Objective message."""
    return Objective(message.percent, milliseconds_of(message.start_within))


def fill_objective(message: queue_pb2.Objective, objective: Objective) -> None:
    """Fills an Objective message that is a field of another."""
    message.percent = objective.percent
    message.start_within.SetInParent()
    fill_time(message.start_within, objective.start_within_ms)
