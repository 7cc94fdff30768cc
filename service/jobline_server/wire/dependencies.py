"""What jobs do that depend on others, between values and the fields of options and settings, which
are the same.
"""

from __future__ import annotations

from jobline.v1 import job_pb2, queue_pb2
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.values import QueueSettings
from jobline_server.wire.times import fill_time, milliseconds_of

Message = job_pb2.JobOptions | queue_pb2.QueueSettings


def policy_of(message: Message) -> DependencyPolicy | None:
    """Returns the policy in options or settings."""
    number = message.on_dependency_failure
    return DependencyPolicy(number) if number else None


def block_timeout_ms_of(message: Message) -> int | None:
    """Returns how long jobs may be BLOCKED."""
    return milliseconds_of(message.block_timeout) if message.HasField("block_timeout") else None


def fill_dependencies(message: Message, value: JobRules | QueueSettings) -> None:
    """Writes both into options or settings."""
    if value.on_dependency_failure is not None:
        policy = job_pb2.DependencyPolicy.ValueType(value.on_dependency_failure)
        message.on_dependency_failure = policy
    if value.block_timeout_ms is not None:
        message.block_timeout.SetInParent()
        fill_time(message.block_timeout, value.block_timeout_ms)
