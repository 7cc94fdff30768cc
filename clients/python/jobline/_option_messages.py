"""Options of jobs as messages of the protocol."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jobline._arguments import refuse_field, value_given
from jobline._dependencies import number_of
from jobline._enums import named
from jobline._option_enums import DeliveryMode
from jobline._option_parts import Backoff, Retention
from jobline._options import JobOptions
from jobline._times import to_duration, to_timestamp
from jobline._unique_mode import UniqueMode
from jobline.v1 import job_pb2


@lru_cache(maxsize=4096)
def options_message(options: JobOptions) -> job_pb2.JobOptions:
    """Returns the message of some options. Kept for reuse: callers must not change it. Raises
    InvalidArgument, which names the field, for what it cannot hold.
    """
    values: dict[str, Any] = {
        "name": options.name or "",
        "content_type": options.content_type or "",
        "headers": options.headers or {},
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "max_stalls": options.max_stalls,
        "lifo": options.lifo,
        "tags": options.tags or (),
        "group": options.group or "",
        "sticky": options.sticky,
        "on_dead_head": options.on_dead_head,
        "phases": options.phases or (),
        "limiters": options.limiters or (),
        "cost": options.cost,
        "min_worker_version": options.min_worker_version or "",
        "slots": options.slots,
        "depends_on": options.depends_on or (),
        "delivery": named(DeliveryMode, options.delivery) if options.delivery else 0,
    }
    try:
        message = job_pb2.JobOptions(**values)
    except (TypeError, ValueError):
        refuse_field(job_pb2.JobOptions, values, path="options.")
        raise
    if options.lease is not None:
        message.lease.CopyFrom(to_duration(options.lease))
    if options.backoff is not None:
        backoff = value_given("options.backoff", options.backoff, Backoff)
        message.backoff.CopyFrom(backoff.to_message())
    if options.on_dependency_failure is not None:
        message.on_dependency_failure = number_of(options.on_dependency_failure)
    if options.block_timeout is not None:
        message.block_timeout.CopyFrom(to_duration(options.block_timeout))
    if options.retention is not None:
        retention = value_given("options.retention", options.retention, Retention)
        message.retention.CopyFrom(retention.to_message())
    if options.attempt_timeout is not None:
        message.timeout.CopyFrom(to_duration(options.attempt_timeout))
    if options.ttl is not None:
        message.ttl.CopyFrom(to_duration(options.ttl))
    if options.retry_until is not None:
        message.retry_until.CopyFrom(to_timestamp(options.retry_until))
    _fill_unique(message, options)
    return message


def _fill_unique(message: job_pb2.JobOptions, options: JobOptions) -> None:
    if options.unique_mode is not None:
        message.unique_mode = job_pb2.UniqueMode.ValueType(named(UniqueMode, options.unique_mode))
    if options.unique_ttl is not None:
        message.unique_ttl.CopyFrom(to_duration(options.unique_ttl))
    if options.unique_max_wait is not None:
        message.unique_max_wait.CopyFrom(to_duration(options.unique_max_wait))
