"""LimiterSettings between message and value."""

from __future__ import annotations

from jobline.v1 import store_pb2
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.wire.rates import fill_rate, rate_from_message


def limiter_from_message(message: store_pb2.StoredLimiter) -> LimiterSettings:
    """Returns the value of a StoredLimiter."""
    limited = None
    if message.limited_until_ms:
        limited = TimeLimit(message.limited_until_ms, message.limited_by, message.limited_reason)
    return LimiterSettings(
        name=message.name,
        number=message.number,
        rate=rate_from_message(message.rate) if message.HasField("rate") else None,
        concurrency=message.concurrency if message.HasField("concurrency") else None,
        limited=limited,
        created_ms=message.created_ms,
    )


def fill_limiter(message: store_pb2.StoredLimiter, limiter: LimiterSettings) -> None:
    """Fills a StoredLimiter."""
    message.name = limiter.name
    message.number = limiter.number
    if limiter.rate is not None:
        fill_rate(message.rate, limiter.rate)
    if limiter.concurrency is not None:
        message.concurrency = limiter.concurrency
    if limiter.limited is not None:
        message.limited_until_ms = limiter.limited.until_ms
        message.limited_by = limiter.limited.by
        message.limited_reason = limiter.limited.reason
    message.created_ms = limiter.created_ms
