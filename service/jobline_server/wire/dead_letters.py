"""DeadLetters of a queue between message and value."""

from __future__ import annotations

from jobline.v1 import queue_pb2
from jobline_server.engine import limits
from jobline_server.engine.dead_letters import NO_DEAD_LETTERS, AutoRetry, DeadLetters
from jobline_server.wire.times import fill_time, milliseconds_of


def dead_letters_from_message(message: queue_pb2.DeadLetters) -> DeadLetters:
    """Returns the value of a DeadLetters message; `NO_DEAD_LETTERS` itself if nothing is set."""
    has = message.HasField
    letters = DeadLetters(
        expire_after_ms=milliseconds_of(message.expire_after) if has("expire_after") else None,
        keep_forever=message.keep_forever,
        max_bytes=message.max_bytes if has("max_bytes") else None,
        auto_retry=_auto_retry(message) if message.auto_retry else None,
    )
    return NO_DEAD_LETTERS if letters == NO_DEAD_LETTERS else letters


def _auto_retry(message: queue_pb2.DeadLetters) -> AutoRetry:
    rule = AutoRetry()
    first_delay_ms, limit = rule.first_delay_ms, rule.limit
    if message.HasField("auto_retry_first_delay"):
        first_delay_ms = milliseconds_of(message.auto_retry_first_delay)
    if message.HasField("auto_retry_max"):
        limit = message.auto_retry_max
    return AutoRetry(first_delay_ms, limit)


def fill_dead_letters(message: queue_pb2.DeadLetters, letters: DeadLetters) -> None:
    """Fills a DeadLetters message that is a field of another; defaults are left out."""
    message.SetInParent()
    if letters.expire_after_ms is not None:
        fill_time(message.expire_after, letters.expire_after_ms)
    message.keep_forever = letters.keep_forever
    if letters.max_bytes is not None:
        message.max_bytes = letters.max_bytes
    rule = letters.auto_retry
    if rule is None:
        return
    message.auto_retry = True
    if rule.first_delay_ms != limits.AUTO_RETRY_FIRST_DELAY_MS_DEFAULT:
        fill_time(message.auto_retry_first_delay, rule.first_delay_ms)
    if rule.limit != limits.AUTO_RETRIES_DEFAULT:
        message.auto_retry_max = rule.limit
