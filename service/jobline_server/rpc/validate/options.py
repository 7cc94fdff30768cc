"""Checks the options of jobs (with backoff and retention), and the settings of queues.

Tables by name hold the check of each field, and only fields that are set are checked. A field that
is in no table is part of the protocol and not served yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from jobline.v1 import job_pb2, queue_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.group_settings import OnDeadHead
from jobline_server.engine.rules import DeliveryMode, DependencyPolicy
from jobline_server.engine.unique_rule import UniqueMode
from jobline_server.engine.values import AckLevel, BackoffKind
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import dead_letters, fields
from jobline_server.rpc.validate.ageing import ageing
from jobline_server.rpc.validate.limits import concurrency, limiters, rate_limit
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.rpc.validate.objective import objective
from jobline_server.rpc.validate.urls import webhook_url
from jobline_server.wire.options import fields_given

Check = Callable[[Any, str], object]


def check_job_options(message: job_pb2.JobOptions) -> dict[str, Any]:
    """Refuses options that are not allowed or not served yet. Returns the fields that are set."""
    return _check_set_fields(message, OPTION_CHECKS)


def check_queue_settings(message: queue_pb2.QueueSettings) -> None:
    """Refuses settings that are not allowed or not served yet."""
    _check_set_fields(message, SETTING_CHECKS)


def check_headers(headers: Mapping[str, str], field: str) -> None:
    """Refuses more than 64 headers, more than 8 KiB together, or a header without a name."""
    fields.at_most(headers, field, limits.HEADERS_MAX)
    size = 0
    # Twice as fast as `items()`, for a map of a message.
    for name in headers:
        value = headers[name]
        if not name:
            raise fields.invalid(field, "a header needs a name")
        fields.single_line(name, field, limits.HEADERS_BYTES_MAX)
        fields.single_line(value, field, limits.HEADERS_BYTES_MAX)
        size += len(name.encode()) + len(value.encode())
    if size > limits.HEADERS_BYTES_MAX:
        raise fields.invalid(field, f"must be at most {limits.HEADERS_BYTES_MAX} bytes together")


def check_tags(values: Sequence[str], field: str) -> None:
    """Refuses more than 16 tags, and one that is empty, too long or not one line."""
    fields.at_most(values, field, limits.TAGS_MAX)
    fields.single_lines(values, field, limits.TAG_CHARACTERS_MAX)
    if "" in values:
        raise fields.invalid(field, "a tag must not be empty")


def _phases(values: Sequence[str], field: str) -> None:
    fields.at_most(values, field, limits.PHASES_MAX)
    fields.single_lines(values, field, limits.PHASE_NAME_CHARACTERS_MAX)
    if "" in values:
        raise fields.invalid(field, "a phase needs a name")
    if len(set(values)) < len(values):
        raise fields.invalid(field, "must be different names")


def lease_ms(value: Any, field: str) -> int:
    """Returns the length of a lease in milliseconds."""
    return fields.duration_ms(value, field, limits.LEASE_MS_MIN, limits.LEASE_MS_MAX)


def backoff_ms(value: Any, field: str) -> int:
    """Returns a delay between attempts in milliseconds."""
    return fields.duration_ms(value, field, 0, limits.BACKOFF_MAX_DELAY_MS_MAX)


def _check_set_fields(message: Message, checks: Mapping[str, Check]) -> dict[str, Any]:
    check_own_fields(message)
    given: dict[str, Any] = fields_given(message)
    for name, value in given.items():
        check = checks.get(name)
        if check is None:
            raise fields.not_served(name)
        check(value, name)
    return given


def _name(value: str, field: str) -> None:
    fields.single_line(value, field, limits.NAME_CHARACTERS_MAX)


def _anything(value: object, field: str) -> None:
    """Accepts any value of the field's type."""


def _max_attempts(value: int, field: str) -> None:
    fields.integer(value, field, 0, limits.MAX_ATTEMPTS_MAX)


def _max_stalls(value: int, field: str) -> None:
    fields.integer(value, field, 0, limits.MAX_STALLS_MAX)


def _disconnect_grace(value: Any, field: str) -> None:
    fields.duration_ms(value, field, 0, limits.DISCONNECT_GRACE_MS_MAX)


def _slots(value: int, field: str) -> None:
    fields.integer(value, field, 1, limits.SLOTS_MAX)


def _policy(value: int, field: str) -> None:
    fields.enum_member(value, field, DependencyPolicy)


def _block_timeout(value: Any, field: str) -> None:
    fields.duration_ms(value, field, 0, limits.BLOCK_TIMEOUT_MS_MAX)


def _delivery(value: int, field: str) -> None:
    fields.enum_member(value, field, DeliveryMode)


def has_formula(backoff: job_pb2.Backoff) -> bool:
    """Returns whether a backoff says how pauses grow."""
    return bool(backoff.kind) or backoff.HasField("base") or backoff.HasField("max_delay")


def _delays(values: Any, field: str) -> None:
    fields.at_most(values, field, limits.BACKOFF_DELAYS_MAX)
    for index, value in enumerate(values):
        backoff_ms(value, f"{field}[{index}]")


def _backoff(value: job_pb2.Backoff, field: str) -> None:
    try:
        _check_set_fields(value, BACKOFF_CHECKS)
        if value.delays and has_formula(value):
            raise fields.invalid("delays", "not together with kind, base or max_delay")
    except Refused as refused:
        raise fields.within(field, refused) from None


def _retention(value: job_pb2.Retention, field: str) -> None:
    try:
        _check_set_fields(value, RETENTION_CHECKS)
    except Refused as refused:
        raise fields.within(field, refused) from None


def _dead_letters(value: queue_pb2.DeadLetters, field: str) -> None:
    try:
        _check_set_fields(value, dead_letters.CHECKS)
        dead_letters.check_pairs(value)
    except Refused as refused:
        raise fields.within(field, refused) from None


def _retention_age(value: Any, field: str) -> None:
    fields.duration_ms(value, field, 0, rpc_limits.RETENTION_AGE_MS_MAX)


def _ttl(value: Any, field: str) -> None:
    fields.duration_ms(value, field, 0, limits.TTL_MS_MAX)


def _timeout(value: Any, field: str) -> None:
    if fields.duration_ms(value, field, 0, limits.TIMEOUT_MS_MAX):
        fields.duration_ms(value, field, limits.TIMEOUT_MS_MIN, limits.TIMEOUT_MS_MAX)


def _error_types(values: Any, field: str) -> None:
    for index, value in enumerate(values):
        fields.required_line(value, f"{field}[{index}]", limits.NAME_CHARACTERS_MAX)


def check_group_settings(message: queue_pb2.GroupSettings) -> None:
    """Refuses settings of groups that are not allowed."""
    _check_set_fields(message, GROUP_CHECKS)


def _group(value: queue_pb2.GroupSettings, field: str) -> None:
    try:
        check_group_settings(value)
    except Refused as refused:
        raise fields.within(field, refused) from None


def _on_dead_head(value: int, field: str) -> None:
    fields.enum_member(value, field, OnDeadHead)


GROUP_CHECKS: dict[str, Check] = {
    "concurrency": lambda value, field: fields.integer(
        value, field, 1, limits.GROUP_CONCURRENCY_MAX
    ),
    "max_waiting": lambda value, field: fields.integer(value, field, 1, limits.GROUP_WAITING_MAX),
    "on_dead_head": _on_dead_head,
    "weight": lambda value, field: fields.integer(value, field, 1, limits.WEIGHT_MAX),
    "rate": rate_limit,
}

BACKOFF_CHECKS: dict[str, Check] = {
    "kind": lambda value, field: fields.enum_member(value, field, BackoffKind),
    "base": backoff_ms,
    "max_delay": backoff_ms,
    "jitter": lambda value, field: fields.real(value, field, 0, 1),
    "delays": _delays,
}

RETENTION_CHECKS: dict[str, Check] = {
    "remove_on_complete": _anything,
    "remove_on_fail": _anything,
    "age": _retention_age,
    "count": lambda value, field: fields.integer(value, field, 0, rpc_limits.RETENTION_COUNT_MAX),
    "delete_after": _retention_age,
}

UNIQUE_CHECKS: dict[str, Check] = {
    "unique_mode": lambda value, field: fields.enum_member(value, field, UniqueMode),
    "unique_ttl": lambda value, field: fields.duration_ms(
        value, field, limits.UNIQUE_MS_MIN, limits.UNIQUE_MS_MAX
    ),
    "unique_max_wait": lambda value, field: fields.duration_ms(
        value, field, 0, limits.UNIQUE_MS_MAX
    ),
}

OPTION_CHECKS: dict[str, Check] = {
    "name": _name,
    "content_type": _name,
    "headers": check_headers,
    "priority": _anything,
    "lease": lease_ms,
    "max_attempts": _max_attempts,
    "backoff": _backoff,
    "max_stalls": _max_stalls,
    "retention": _retention,
    "delivery": _delivery,
    "min_worker_version": fields.version,
    "slots": _slots,
    "group": _name,
    "on_dead_head": _on_dead_head,
    "sticky": _anything,
    "depends_on": lambda value, field: fields.at_most(value, field, limits.PARENTS_MAX),
    "on_dependency_failure": _policy,
    "block_timeout": _block_timeout,
    "tags": check_tags,
    "phases": _phases,
    "limiters": limiters,
    "cost": lambda value, field: fields.integer(value, field, 1, limits.COST_MAX),
    "batch_id": _anything,
    "webhook": webhook_url,
    "lifo": _anything,
    "ttl": _ttl,
    "timeout": _timeout,
    "retry_until": fields.moment_ms,
    "unique_key": lambda value, field: fields.key(value, field, limits.UNIQUE_KEY_BYTES_MAX),
    **UNIQUE_CHECKS,
}

SETTING_CHECKS: dict[str, Check] = {
    "lease": lease_ms,
    "max_attempts": _max_attempts,
    "backoff": _backoff,
    "max_stalls": _max_stalls,
    "retention": _retention,
    "min_ack_level": lambda value, field: fields.enum_member(value, field, AckLevel),
    "max_waiting": lambda value, field: fields.integer(value, field, 1, rpc_limits.MAX_WAITING_MAX),
    "non_retryable_error_types": _error_types,
    "rate": rate_limit,
    "concurrency": concurrency,
    "max_waiting_bytes": lambda value, field: fields.integer(
        value, field, 1, rpc_limits.MAX_WAITING_BYTES_MAX
    ),
    "delivery": _delivery,
    "dead_letters": _dead_letters,
    "check_payloads": _anything,
    "disconnect_grace": _disconnect_grace,
    "ttl": _ttl,
    "expired_to_dead": _anything,
    "fair": _anything,
    "ageing": ageing,
    "timeout": _timeout,
    "group": _group,
    "objective": objective,
    **UNIQUE_CHECKS,
    "on_dependency_failure": _policy,
    "block_timeout": _block_timeout,
}
