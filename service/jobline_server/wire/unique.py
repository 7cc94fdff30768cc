"""UniqueRule between value and the fields that job options and queue settings both have for it."""

from __future__ import annotations

from jobline.v1 import job_pb2, queue_pb2
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE, UniqueMode, UniqueRule
from jobline_server.wire.times import fill_time, milliseconds_of


def unique_rule_from_message(
    message: job_pb2.JobOptions | queue_pb2.QueueSettings,
) -> UniqueRule:
    """Returns the rule in options or settings; `NO_UNIQUE_RULE` itself if nothing is set."""
    has = message.HasField
    rule = UniqueRule(
        mode=UniqueMode(message.unique_mode) if message.unique_mode else None,
        ttl_ms=milliseconds_of(message.unique_ttl) if has("unique_ttl") else None,
        max_wait_ms=milliseconds_of(message.unique_max_wait) if has("unique_max_wait") else None,
    )
    return NO_UNIQUE_RULE if rule == NO_UNIQUE_RULE else rule


def fill_unique_rule(
    message: job_pb2.JobOptions | queue_pb2.QueueSettings, rule: UniqueRule
) -> None:
    """Writes a rule into options or settings."""
    if rule.mode is not None:
        message.unique_mode = job_pb2.UniqueMode.ValueType(rule.mode)
    if rule.ttl_ms is not None:
        message.unique_ttl.SetInParent()
        fill_time(message.unique_ttl, rule.ttl_ms)
    if rule.max_wait_ms is not None:
        message.unique_max_wait.SetInParent()
        fill_time(message.unique_max_wait, rule.max_wait_ms)
