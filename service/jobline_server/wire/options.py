"""JobOptions between message and value, and the fields that queue settings share with them.

A field unset in the message is `None` in the value, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from jobline.v1 import job_pb2
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import (
    NO_BACKOFF,
    NO_RETENTION,
    Backoff,
    BackoffKind,
    JobOptions,
    Retention,
)
from jobline_server.wire.identity import IdentityCache
from jobline_server.wire.rules import RULE_FIELDS, fill_rules, rules_from_message
from jobline_server.wire.times import fill_time, milliseconds_of


def backoff_from_message(message: job_pb2.Backoff) -> Backoff:
    """Returns the value of a Backoff message."""
    return Backoff(
        kind=BackoffKind(message.kind) if message.kind else None,
        base_ms=milliseconds_of(message.base) if message.HasField("base") else None,
        max_delay_ms=milliseconds_of(message.max_delay) if message.HasField("max_delay") else None,
        jitter=message.jitter if message.HasField("jitter") else None,
        delays_ms=tuple(map(milliseconds_of, message.delays)),
    )


def fill_backoff(message: job_pb2.Backoff, backoff: Backoff) -> None:
    """Fills a Backoff message that is a field of another."""
    message.SetInParent()
    if backoff.kind is not None:
        message.kind = job_pb2.BackoffKind.ValueType(backoff.kind)
    if backoff.base_ms is not None:
        message.base.SetInParent()
        fill_time(message.base, backoff.base_ms)
    if backoff.max_delay_ms is not None:
        message.max_delay.SetInParent()
        fill_time(message.max_delay, backoff.max_delay_ms)
    if backoff.jitter is not None:
        message.jitter = backoff.jitter
    for delay_ms in backoff.delays_ms:
        fill_time(message.delays.add(), delay_ms)


def retention_from_message(message: job_pb2.Retention) -> Retention:
    """Returns the value of a Retention message."""
    has = message.HasField
    return Retention(
        remove_on_complete=message.remove_on_complete if has("remove_on_complete") else None,
        remove_on_fail=message.remove_on_fail if has("remove_on_fail") else None,
        age_ms=milliseconds_of(message.age) if has("age") else None,
        count=message.count if has("count") else None,
        delete_after_ms=(milliseconds_of(message.delete_after) if has("delete_after") else None),
    )


def fill_retention(message: job_pb2.Retention, retention: Retention) -> None:
    """Fills a Retention message that is a field of another."""
    message.SetInParent()
    if retention.remove_on_complete is not None:
        message.remove_on_complete = retention.remove_on_complete
    if retention.remove_on_fail is not None:
        message.remove_on_fail = retention.remove_on_fail
    if retention.age_ms is not None:
        message.age.SetInParent()
        fill_time(message.age, retention.age_ms)
    if retention.count is not None:
        message.count = retention.count
    if retention.delete_after_ms is not None:
        message.delete_after.SetInParent()
        fill_time(message.delete_after, retention.delete_after_ms)


def fields_given(message: Message) -> dict[str, Any]:
    """Returns the fields of a message that are set, by name. Each access to a field of a message
    costs more than a look-up here.
    """
    return {field.name: value for field, value in message.ListFields()}


def options_from_message(
    message: job_pb2.JobOptions, given: Mapping[str, Any] | None = None
) -> JobOptions:
    """Returns the value of options; headers are sorted, so that equal options are equal values.
    `given` are the fields that are set, if they are known already.
    """
    # Options with headers of their own are made for every job.
    given = fields_given(message) if given is None else given
    get = given.get
    return JobOptions(
        name=get("name", ""),
        content_type=get("content_type", ""),
        headers=_pairs(given["headers"]) if "headers" in given else (),
        priority=get("priority", 0),
        lease_ms=milliseconds_of(given["lease"]) if "lease" in given else None,
        max_attempts=get("max_attempts"),
        backoff=backoff_from_message(given["backoff"]) if "backoff" in given else NO_BACKOFF,
        max_stalls=get("max_stalls"),
        retention=retention_from_message(given["retention"])
        if "retention" in given
        else NO_RETENTION,
        rules=NO_RULES if RULE_FIELDS.isdisjoint(given) else rules_from_message(message),
    )


def _pairs(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple([(name, headers[name]) for name in sorted(headers)])


def options_to_message(options: JobOptions) -> job_pb2.JobOptions:
    """Returns a message of options. Defaults stay unset: the shortest form, read back the same."""
    message = job_pb2.JobOptions(name=options.name, content_type=options.content_type)
    if options.headers:
        message.headers.update(options.headers)
    if options.priority:
        message.priority = options.priority
    if options.lease_ms is not None:
        message.lease.SetInParent()
        fill_time(message.lease, options.lease_ms)
    if options.max_attempts is not None:
        message.max_attempts = options.max_attempts
    if options.backoff != NO_BACKOFF:
        fill_backoff(message.backoff, options.backoff)
    if options.max_stalls is not None:
        message.max_stalls = options.max_stalls
    if options.retention != NO_RETENTION:
        fill_retention(message.retention, options.retention)
    if options.rules is not NO_RULES:
        fill_rules(message, options.rules)
    return message


def _serialize(options: JobOptions) -> bytes:
    return options_to_message(options).SerializeToString(deterministic=True)


# Options are interned, so the same few objects come again and again.
_BYTES: IdentityCache[JobOptions, bytes] = IdentityCache(_serialize, entries_max=4_096)
_MESSAGES: IdentityCache[JobOptions, job_pb2.JobOptions] = IdentityCache(
    options_to_message, entries_max=4_096
)


def serialized_options(options: JobOptions) -> bytes:
    """Returns the bytes of options, the same for equal options; cached by identity."""
    return _BYTES.get(options)


def shared_message(options: JobOptions) -> job_pb2.JobOptions:
    """Returns a message of options to copy from; it is cached, so never change it."""
    return _MESSAGES.get(options)
