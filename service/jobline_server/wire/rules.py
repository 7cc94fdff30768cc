"""JobRules between value and the fields of a JobOptions message that few jobs set."""

from __future__ import annotations

from jobline.v1 import job_pb2
from jobline_server.engine.group_settings import OnDeadHead
from jobline_server.engine.rules import NO_RULES, DeliveryMode, JobRules
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE
from jobline_server.wire.dependencies import block_timeout_ms_of, fill_dependencies, policy_of
from jobline_server.wire.times import fill_time, milliseconds_of
from jobline_server.wire.unique import fill_unique_rule, unique_rule_from_message

# The fields of JobOptions that are rules. Options without any of them share one object.
RULE_FIELDS = frozenset(
    {
        "tags", "phases", "min_worker_version", "limiters", "cost", "delivery", "slots", "lifo",
        "retry_until", "timeout", "ttl", "on_dead_head", "unique_mode", "unique_ttl",
        "unique_max_wait", "sticky", "on_dependency_failure", "block_timeout", "batch_id",
        "webhook",
    }
)  # fmt: skip


def rules_from_message(message: job_pb2.JobOptions) -> JobRules:
    """Returns the rules in options; `NO_RULES` itself if none is set."""
    rules = JobRules(
        tags=tuple(sorted(set(message.tags))),
        phases=tuple(message.phases),
        min_worker_version=message.min_worker_version,
        limiters=tuple(sorted(set(message.limiters))),
        cost=message.cost if message.HasField("cost") else 1,
        delivery_mode=DeliveryMode(message.delivery) if message.delivery else None,
        slots=message.slots if message.HasField("slots") else None,
        lifo=message.lifo,
        retry_until_ms=_moment_ms(message),
        timeout_ms=milliseconds_of(message.timeout) if message.HasField("timeout") else None,
        ttl_ms=milliseconds_of(message.ttl) if message.HasField("ttl") else None,
        on_dead_head=OnDeadHead(message.on_dead_head) if message.on_dead_head else None,
        unique=unique_rule_from_message(message),
        sticky=message.sticky,
        on_dependency_failure=policy_of(message),
        block_timeout_ms=block_timeout_ms_of(message),
        batch_id=message.batch_id,
        webhook=message.webhook,
    )
    return NO_RULES if rules == NO_RULES else rules


def fill_rules(message: job_pb2.JobOptions, rules: JobRules) -> None:
    """Writes rules into options."""
    message.tags.extend(rules.tags)
    message.phases.extend(rules.phases)
    message.min_worker_version = rules.min_worker_version
    message.limiters.extend(rules.limiters)
    if rules.cost != 1:
        message.cost = rules.cost
    if rules.delivery_mode is not None:
        message.delivery = job_pb2.DeliveryMode.ValueType(rules.delivery_mode)
    if rules.slots is not None:
        message.slots = rules.slots
    fill_dependencies(message, rules)
    if rules.lifo:
        message.lifo = True
    if rules.timeout_ms is not None:
        message.timeout.SetInParent()
        fill_time(message.timeout, rules.timeout_ms)
    if rules.ttl_ms is not None:
        message.ttl.SetInParent()
        fill_time(message.ttl, rules.ttl_ms)
    if rules.retry_until_ms is not None:
        message.retry_until.SetInParent()
        fill_time(message.retry_until, rules.retry_until_ms)
    _fill_group_rules(message, rules)
    message.batch_id = rules.batch_id
    message.webhook = rules.webhook
    if rules.unique is not NO_UNIQUE_RULE:
        fill_unique_rule(message, rules.unique)


def _fill_group_rules(message: job_pb2.JobOptions, rules: JobRules) -> None:
    if rules.on_dead_head is not None:
        message.on_dead_head = job_pb2.OnDeadHead.ValueType(rules.on_dead_head)
    if rules.sticky:
        message.sticky = True


def _moment_ms(message: job_pb2.JobOptions) -> int | None:
    return milliseconds_of(message.retry_until) if message.HasField("retry_until") else None
