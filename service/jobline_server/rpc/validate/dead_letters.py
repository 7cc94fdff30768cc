"""Checks a queue's settings for its dead jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline.v1 import queue_pb2
from jobline_server.engine import limits
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import fields

_AUTO_RETRY = ("auto_retry_first_delay", "auto_retry_max")


def check_pairs(message: queue_pb2.DeadLetters) -> None:
    """Refuses settings that contradict each other."""
    if message.keep_forever and message.HasField("expire_after"):
        raise fields.invalid("expire_after", "must not be set together with keep_forever")
    for name in _AUTO_RETRY:
        if message.HasField(name) and not message.auto_retry:  # type: ignore[arg-type]  # a name of a field
            raise fields.invalid(name, "needs auto_retry")


def _expire_after(value: Any, field: str) -> None:
    fields.duration_ms(value, field, limits.SECOND_MS, rpc_limits.RETENTION_AGE_MS_MAX)


def _first_delay(value: Any, field: str) -> None:
    fields.duration_ms(value, field, limits.SECOND_MS, limits.AUTO_RETRY_FIRST_DELAY_MS_MAX)


def _max_bytes(value: int, field: str) -> None:
    fields.integer(value, field, rpc_limits.DEAD_BYTES_MIN, rpc_limits.DEAD_BYTES_MAX)


def _switch(value: bool, field: str) -> None:
    """Accepts both values."""


CHECKS: dict[str, Callable[[Any, str], object]] = {
    "expire_after": _expire_after,
    "keep_forever": _switch,
    "max_bytes": _max_bytes,
    "auto_retry": _switch,
    "auto_retry_first_delay": _first_delay,
    "auto_retry_max": lambda value, field: fields.integer(value, field, 1, limits.AUTO_RETRIES_MAX),
}
