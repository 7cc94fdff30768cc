"""QueueSettings between message and value."""

from __future__ import annotations

from jobline.v1 import job_pb2, queue_pb2
from jobline_server.engine.dead_letters import NO_DEAD_LETTERS
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS
from jobline_server.engine.rules import DeliveryMode
from jobline_server.engine.unique_rule import UniqueRule
from jobline_server.engine.values import NO_BACKOFF, NO_RETENTION, AckLevel, QueueSettings
from jobline_server.wire.ageing import ageing_from_message, fill_ageing
from jobline_server.wire.dead_letters import dead_letters_from_message, fill_dead_letters
from jobline_server.wire.dependencies import block_timeout_ms_of, fill_dependencies, policy_of
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message
from jobline_server.wire.objective import fill_objective, objective_from_message
from jobline_server.wire.options import (
    backoff_from_message,
    fill_backoff,
    fill_retention,
    retention_from_message,
)
from jobline_server.wire.rates import fill_rate, rate_from_message
from jobline_server.wire.times import fill_time, milliseconds_of
from jobline_server.wire.unique import fill_unique_rule, unique_rule_from_message


def settings_from_message(message: queue_pb2.QueueSettings) -> QueueSettings:
    """Returns the value of a QueueSettings message."""
    has = message.HasField
    unique = unique_rule_from_message(message)
    return QueueSettings(
        lease_ms=milliseconds_of(message.lease) if has("lease") else None,
        max_attempts=message.max_attempts if has("max_attempts") else None,
        backoff=backoff_from_message(message.backoff) if has("backoff") else NO_BACKOFF,
        max_stalls=message.max_stalls if has("max_stalls") else None,
        retention=retention_from_message(message.retention) if has("retention") else NO_RETENTION,
        min_ack_level=AckLevel(message.min_ack_level) if message.min_ack_level else None,
        max_waiting=message.max_waiting if has("max_waiting") else None,
        non_retryable_error_types=tuple(message.non_retryable_error_types),
        rate=rate_from_message(message.rate) if has("rate") else None,
        concurrency=message.concurrency if has("concurrency") else None,
        max_waiting_bytes=message.max_waiting_bytes if has("max_waiting_bytes") else None,
        delivery_mode=DeliveryMode(message.delivery) if message.delivery else None,
        dead_letters=(
            dead_letters_from_message(message.dead_letters)
            if has("dead_letters")
            else NO_DEAD_LETTERS
        ),
        check_payloads=message.check_payloads,
        disconnect_grace_ms=(
            milliseconds_of(message.disconnect_grace) if has("disconnect_grace") else None
        ),
        ttl_ms=milliseconds_of(message.ttl) if has("ttl") else None,
        expired_to_dead=message.expired_to_dead,
        timeout_ms=milliseconds_of(message.timeout) if has("timeout") else None,
        ageing=ageing_from_message(message.ageing) if has("ageing") else None,
        group=group_settings_from_message(message.group) if has("group") else NO_GROUP_SETTINGS,
        unique_mode=unique.mode,
        unique_ttl_ms=unique.ttl_ms,
        unique_max_wait_ms=unique.max_wait_ms,
        on_dependency_failure=policy_of(message),
        block_timeout_ms=block_timeout_ms_of(message),
        fair=message.fair,
        objective=objective_from_message(message.objective) if has("objective") else None,
    )


def fill_settings(message: queue_pb2.QueueSettings, settings: QueueSettings) -> None:
    """Fills a QueueSettings message that is a field of another."""
    message.SetInParent()
    if settings.lease_ms is not None:
        message.lease.SetInParent()
        fill_time(message.lease, settings.lease_ms)
    if settings.max_attempts is not None:
        message.max_attempts = settings.max_attempts
    if settings.backoff != NO_BACKOFF:
        fill_backoff(message.backoff, settings.backoff)
    if settings.max_stalls is not None:
        message.max_stalls = settings.max_stalls
    if settings.retention != NO_RETENTION:
        fill_retention(message.retention, settings.retention)
    if settings.min_ack_level is not None:
        message.min_ack_level = job_pb2.AckLevel.ValueType(settings.min_ack_level)
    if settings.max_waiting is not None:
        message.max_waiting = settings.max_waiting
    message.non_retryable_error_types.extend(settings.non_retryable_error_types)
    _fill_delivery(message, settings)
    _fill_deadlines(message, settings)
    fill_dependencies(message, settings)
    ttl_ms, max_wait_ms = settings.unique_ttl_ms, settings.unique_max_wait_ms
    fill_unique_rule(message, UniqueRule(settings.unique_mode, ttl_ms, max_wait_ms))
    _fill_limits(message, settings)
    message.check_payloads = settings.check_payloads
    if settings.dead_letters != NO_DEAD_LETTERS:
        fill_dead_letters(message.dead_letters, settings.dead_letters)


def _fill_delivery(message: queue_pb2.QueueSettings, settings: QueueSettings) -> None:
    if settings.delivery_mode is not None:
        message.delivery = job_pb2.DeliveryMode.ValueType(settings.delivery_mode)
    if settings.ageing is not None:
        fill_ageing(message.ageing, settings.ageing)
    if settings.disconnect_grace_ms is not None:
        message.disconnect_grace.SetInParent()
        fill_time(message.disconnect_grace, settings.disconnect_grace_ms)


def _fill_deadlines(message: queue_pb2.QueueSettings, settings: QueueSettings) -> None:
    if settings.ttl_ms is not None:
        message.ttl.SetInParent()
        fill_time(message.ttl, settings.ttl_ms)
    if settings.expired_to_dead:
        message.expired_to_dead = True
    if settings.timeout_ms is not None:
        message.timeout.SetInParent()
        fill_time(message.timeout, settings.timeout_ms)


def _fill_limits(message: queue_pb2.QueueSettings, settings: QueueSettings) -> None:
    if settings.rate is not None:
        fill_rate(message.rate, settings.rate)
    if settings.concurrency is not None:
        message.concurrency = settings.concurrency
    if settings.max_waiting_bytes is not None:
        message.max_waiting_bytes = settings.max_waiting_bytes
    if settings.group != NO_GROUP_SETTINGS:
        fill_group_settings(message.group, settings.group)
    if settings.fair:
        message.fair = True
    if settings.objective is not None:
        fill_objective(message.objective, settings.objective)
