"""Options of jobs as messages of the protocol."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jobline._arguments import (
    duration_given,
    member_given,
    message_given,
    moment_given,
    refuse_field,
)
from jobline._dependencies import DependencyPolicy
from jobline._option_enums import DeliveryMode
from jobline._option_parts import Backoff, Retention
from jobline._options import JobOptions
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
        "batch_id": options.batch_id,
        "webhook": options.webhook,
        "depends_on": options.depends_on or (),
        "on_dependency_failure": member_given(
            "options.on_dependency_failure", DependencyPolicy, options.on_dependency_failure
        ),
        "delivery": member_given("options.delivery", DeliveryMode, options.delivery),
        "unique_mode": member_given("options.unique_mode", UniqueMode, options.unique_mode),
        **_times_and_parts(options),
    }
    try:
        message = job_pb2.JobOptions(**values)
    except (TypeError, ValueError):
        refuse_field(job_pb2.JobOptions, values, path="options.")
        raise
    return message


def _times_and_parts(options: JobOptions) -> dict[str, Any]:
    return {
        "lease": duration_given("options.lease", options.lease),
        "backoff": message_given("options.backoff", options.backoff, Backoff),
        "block_timeout": duration_given("options.block_timeout", options.block_timeout),
        "retention": message_given("options.retention", options.retention, Retention),
        "timeout": duration_given("options.attempt_timeout", options.attempt_timeout),
        "ttl": duration_given("options.ttl", options.ttl),
        "retry_until": moment_given("options.retry_until", options.retry_until),
        "unique_ttl": duration_given("options.unique_ttl", options.unique_ttl),
        "unique_max_wait": duration_given("options.unique_max_wait", options.unique_max_wait),
    }
