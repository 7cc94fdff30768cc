"""Converts limiters."""

from __future__ import annotations

from jobline.v1 import limiter_service_pb2 as pb
from jobline_server.engine.rates import RateLimit
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.limits import check_name, concurrency, rate_limit
from jobline_server.runtime.views import LimiterView
from jobline_server.wire.rates import fill_rate, rate_from_message


def limiter_name(value: str) -> str:
    """Returns the name of a limiter, which is as that of a queue."""
    check_name(value, "limiter")
    return value


def limits_of(request: pb.UpsertLimiterRequest) -> tuple[RateLimit | None, int | None]:
    """Returns the rate and the concurrency of a limiter, one of which is set."""
    has = request.HasField
    if has("rate"):
        rate_limit(request.rate, "rate")
    if has("concurrency"):
        concurrency(request.concurrency, "concurrency")
    elif not has("rate"):
        raise fields.invalid("rate", "a limiter needs a rate or a concurrency")
    rate = rate_from_message(request.rate) if has("rate") else None
    return rate, request.concurrency if has("concurrency") else None


def fill_limiter(message: pb.Limiter, view: LimiterView) -> None:
    """Fills a Limiter message."""
    settings = view.settings
    message.name = settings.name
    if settings.rate is not None:
        fill_rate(message.rate, settings.rate)
    if settings.concurrency is not None:
        message.concurrency = settings.concurrency
    message.active = view.active
    if view.tokens is not None:
        message.tokens = view.tokens
    if view.limited is not None:
        fill_moment(message.limited_until, view.limited.until_ms)
        message.limited_by = view.limited.by
        message.limited_reason = view.limited.reason
    fill_moment(message.created_at, settings.created_ms)
