"""Checks the limits of queues and limiters."""

from __future__ import annotations

from collections.abc import Sequence

from jobline.v1 import queue_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.mistyped import check_own_fields


def rate_limit(message: queue_pb2.RateLimit, field: str) -> None:
    """Refuses a rate that is not allowed."""
    try:
        check_own_fields(message)
        fields.integer(message.rate, "rate", 1, limits.RATE_MAX)
        if message.HasField("period"):
            shortest, longest = limits.RATE_PERIOD_MS_MIN, limits.RATE_PERIOD_MS_MAX
            fields.duration_ms(message.period, "period", shortest, longest)
        if message.HasField("burst"):
            fields.integer(message.burst, "burst", 1, limits.RATE_MAX)
    except Refused as refused:
        raise fields.within(field, refused) from None


def limiters(values: Sequence[str], field: str) -> None:
    """Refuses more than four names of limiters, or one that cannot be."""
    fields.at_most(values, field, limits.LIMITERS_PER_JOB_MAX)
    for index, name in enumerate(values):
        check_name(name, f"{field}[{index}]")


def check_name(name: str, field: str) -> None:
    """Refuses a name that no limiter can have; it is as that of a queue."""
    if not name:
        raise fields.invalid(field, f"is empty; the name of a limiter {fields.A_NAME}")
    fields.queue_name(name, field)


def concurrency(value: int, field: str) -> None:
    """Refuses a concurrency that is not allowed."""
    fields.integer(value, field, 1, limits.CONCURRENCY_MAX)
