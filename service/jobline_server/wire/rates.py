"""RateLimit between message and value."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine import limits
from jobline_server.engine.rates import RateLimit
from jobline_server.wire.times import fill_time, milliseconds_of


def rate_from_message(message: queue_pb2.RateLimit) -> RateLimit:
    """Returns the value of a RateLimit message."""
    has_period = message.HasField("period")
    return RateLimit(
        message.rate,
        milliseconds_of(message.period) if has_period else limits.RATE_PERIOD_MS_DEFAULT,
        message.burst if message.HasField("burst") else None,
    )


def fill_rate(message: queue_pb2.RateLimit, rate: RateLimit) -> None:
    """Fills a RateLimit message that is a field of another."""
    message.rate = rate.rate
    fill_time(message.period, rate.period_ms)
    if rate.burst is not None:
        message.burst = rate.burst
