"""Hypothesis strategies for the values that facts and stored state are made of; every field gets
values of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from jobline_server.engine import values
from jobline_server.engine.ageing import Ageing
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.batches import BatchCount, BatchCounts
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.dependency_messages import (
    AwaitJobs,
    EndsOfJobs,
    ForgetJobs,
    JobsNotLive,
)
from jobline_server.engine.group_settings import (
    NO_GROUP_SETTINGS,
    GroupSettings,
    OnDeadHead,
)
from jobline_server.engine.job_log import JobLog, LogLine
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.objective import Objective
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.records import JobRecord
from jobline_server.engine.rules import DeliveryMode, DependencyPolicy, JobRules
from jobline_server.engine.schedule import JobTemplate, Missed, Overlap, ScheduleSettings
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.ties import NO_CLAIM, NO_TIES, Claim, Ties
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE, UniqueMode, UniqueRule
from tests.pushed_payloads import with_columns

Any_ = st.SearchStrategy[Any]

text = st.text(max_size=8)
payloads = st.lists(st.binary(max_size=8), min_size=1, max_size=4)
ids = st.integers(0, 2**53 - 1)
id_lists = st.lists(ids, max_size=4)
counts = st.integers(1, 10_000)
deliveries = st.integers(0, 2**52)
digests = st.integers(0, 2**63 - 1)
moments = st.integers(0, 2**45)


def optional(strategy: Any_) -> Any_:
    """The strategy, or None."""
    return st.none() | strategy


backoffs = st.builds(
    values.Backoff,
    kind=optional(st.sampled_from(values.BackoffKind)),
    base_ms=optional(moments),
    max_delay_ms=optional(moments),
    jitter=optional(st.floats(0, 1)),
    delays_ms=st.lists(moments, max_size=3).map(tuple),
)
retentions = st.builds(
    values.Retention,
    remove_on_complete=optional(st.booleans()),
    remove_on_fail=optional(st.booleans()),
    age_ms=optional(moments),
    count=optional(st.integers(0, 10**7)),
    delete_after_ms=optional(moments),
)
on_dead_heads = st.none() | st.sampled_from(OnDeadHead)
rate_limits = st.builds(
    RateLimit,
    rate=st.integers(1, 10**6),
    period_ms=st.integers(10, 10**9),
    burst=optional(st.integers(1, 10**6)),
)
group_settings = st.builds(
    GroupSettings,
    concurrency=st.none() | st.integers(1, 1_000),
    max_waiting=st.none() | st.integers(1, 100_000),
    on_dead_head=on_dead_heads,
    weight=st.none() | st.integers(1, 1_000),
    rate=st.none() | rate_limits,
).map(lambda made: NO_GROUP_SETTINGS if made == NO_GROUP_SETTINGS else made)
job_rules = st.builds(
    JobRules,
    tags=st.sets(text, max_size=3).map(sorted).map(tuple),
    phases=st.lists(text, max_size=3).map(tuple),
    min_worker_version=text,
    limiters=st.lists(text, max_size=3, unique=True).map(sorted).map(tuple),
    cost=st.integers(1, 10**6),
    delivery_mode=optional(st.sampled_from(DeliveryMode)),
    slots=optional(st.integers(1, 1_000)),
    lifo=st.booleans(),
    retry_until_ms=optional(moments),
    ttl_ms=optional(moments),
    timeout_ms=optional(moments),
    on_dead_head=on_dead_heads,
    unique=st.builds(
        UniqueRule,
        mode=optional(st.sampled_from(UniqueMode)),
        ttl_ms=optional(moments),
        max_wait_ms=optional(moments),
    ).map(lambda made: NO_UNIQUE_RULE if made == NO_UNIQUE_RULE else made),
    sticky=st.booleans(),
    on_dependency_failure=optional(st.sampled_from(DependencyPolicy)),
    block_timeout_ms=optional(moments),
    batch_id=ids,
    webhook=text,
)
job_options = st.builds(
    values.JobOptions,
    name=text,
    content_type=text,
    headers=st.dictionaries(text, text, max_size=3).map(lambda d: tuple(sorted(d.items()))),
    priority=st.integers(-(2**31), 2**31 - 1),
    lease_ms=optional(moments),
    max_attempts=optional(st.integers(0, 1_000)),
    backoff=backoffs,
    max_stalls=optional(st.integers(0, 1_000)),
    retention=retentions,
    rules=job_rules,
)
claims = st.just(NO_CLAIM) | st.builds(Claim, moments, moments, st.booleans(), st.booleans())
ties = (
    st.builds(Ties, text, text, st.lists(ids, max_size=3).map(tuple), claims, st.booleans())
    .map(
        # Only a job with a unique key has a claim on it.
        lambda made: made if made.unique_key else replace(made, claim=NO_CLAIM)
    )
    .map(lambda made: replace(made, on_failure=bytes(range(len(made.parents)))))
    .map(lambda made: NO_TIES if made == NO_TIES else made)
)
shards = st.integers(0, 1_023)
message_numbers = st.integers(1, 2**63 - 1)
id_tuples = id_lists.map(tuple)
signed = st.integers(-(2**40), 2**40)
batch_count = st.builds(
    BatchCount, st.lists(signed, min_size=5, max_size=5).map(tuple), st.booleans()
)
batch_counts = st.lists(st.tuples(ids, batch_count), max_size=4).map(
    lambda rows: BatchCounts(tuple(one for one, _ in rows), tuple(count for _, count in rows))
)
shard_messages = st.one_of(
    st.builds(
        PushJobs,
        queue=text,
        options=job_options,
        payloads=payloads.flatmap(with_columns),
        ties=st.builds(Ties, group=text, unique_key=text),
        delay_ms=moments,
    ),
    batch_counts,
    st.builds(AwaitJobs, ids=id_tuples, by_shard=shards),
    st.builds(ForgetJobs, ids=id_tuples, by_shard=shards),
    st.builds(JobsNotLive, ids=id_tuples),
    st.lists(st.tuples(ids, st.sampled_from(ParentEnd)), max_size=3).map(
        lambda rows: EndsOfJobs(tuple(one for one, _ in rows), tuple(end for _, end in rows))
    ),
)
auto_retries = st.builds(AutoRetry, st.integers(1, 2**40), st.integers(1, 20))
dead_letters = st.builds(
    DeadLetters, optional(moments), st.booleans(), optional(moments), optional(auto_retries)
)
limiters = st.builds(
    LimiterSettings,
    name=text,
    number=ids,
    rate=optional(rate_limits),
    concurrency=optional(st.integers(1, 10**6)),
    limited=optional(st.builds(TimeLimit, st.integers(1, 10**13), text, text)),
    created_ms=moments,
)
schedule_settings = st.builds(
    ScheduleSettings,
    queue=text,
    cron=text,
    every_ms=moments,
    time_zone=text,
    start_ms=moments,
    end_ms=moments,
    limit=st.integers(0, 10**9),
    immediately=st.booleans(),
    jitter_ms=moments,
    skip_if_no_worker=st.booleans(),
    job=st.builds(
        JobTemplate, job_options, st.builds(Ties, text, text), st.binary(max_size=8), moments
    ),
    overlap=st.sampled_from(Overlap),
    missed=st.sampled_from(Missed),
)
settings = st.builds(
    values.QueueSettings,
    lease_ms=optional(moments),
    max_attempts=optional(st.integers(0, 1_000)),
    backoff=backoffs,
    max_stalls=optional(st.integers(0, 1_000)),
    retention=retentions,
    min_ack_level=optional(st.sampled_from(values.AckLevel)),
    max_waiting=optional(st.integers(1, 10**9)),
    non_retryable_error_types=st.lists(text, max_size=3).map(tuple),
    rate=optional(rate_limits),
    concurrency=optional(st.integers(1, 10**6)),
    max_waiting_bytes=optional(st.integers(1, 2**50)),
    delivery_mode=optional(st.sampled_from(DeliveryMode)),
    dead_letters=dead_letters,
    disconnect_grace_ms=optional(moments),
    ttl_ms=optional(moments),
    expired_to_dead=st.booleans(),
    timeout_ms=optional(moments),
    objective=optional(st.builds(Objective, st.floats(1, 99.99), st.integers(100, 7 * 86_400_000))),
    ageing=optional(
        st.builds(
            Ageing,
            st.integers(10, 2**35),
            st.integers(1, 2**31 - 1),
            optional(st.integers(1, 2**31 - 1)),
        )
    ),
    group=group_settings,
    unique_mode=optional(st.sampled_from(UniqueMode)),
    unique_ttl_ms=optional(moments),
    unique_max_wait_ms=optional(moments),
    on_dependency_failure=optional(st.sampled_from(DependencyPolicy)),
    block_timeout_ms=optional(moments),
    fair=st.booleans(),
)
errors = st.builds(
    values.JobError, type=text, message=text, stack=text, details=st.binary(max_size=8)
)
attempts = st.builds(
    values.Attempt,
    attempt=st.integers(1, 1_000),
    delivery=deliveries,
    worker=text,
    leased_ms=moments,
    ended_ms=moments,
    outcome=st.sampled_from(values.AttemptOutcome),
    error=optional(errors),
    version=text,
)
log_lines = st.builds(
    LogLine,
    written_ms=moments,
    level=st.sampled_from(values.LogLevel),
    text=text,
    attempt=st.integers(1, 1_000),
)


@st.composite
def logs(draw: st.DrawFn) -> JobLog:
    """A log with some lines, and some that were dropped."""
    log = JobLog(dropped=draw(st.integers(0, 10**6)))
    log.add(draw(st.lists(log_lines, max_size=3)))
    return log


finished_phases = st.builds(
    FinishedPhase, moments, moments, st.integers(1, 1_000), st.binary(max_size=8)
)
records = st.builds(
    JobRecord,
    id=ids,
    queue=text,
    options=job_options,
    payload=st.binary(max_size=8),
    pushed_ms=moments,
    job_key=text,
    attempts=st.integers(0, 1_000),
    stalls=st.integers(0, 1_000),
    releases=st.integers(0, 1_000),
    delivery=deliveries,
    history=st.lists(attempts, max_size=3).map(tuple),
    worker_checkpoint=st.binary(max_size=8),
    progress=st.floats(0, 100),
    progress_message=text,
    worker=text,
    ended_ms=moments,
    reason=st.sampled_from(values.EndReason),
    result=st.binary(max_size=8),
    error=optional(errors),
    lease_reason=st.sampled_from(values.LeaseReason),
    ties=ties,
    log=optional(logs()),
    auto_retries=st.integers(0, 20),
    retry_ms=moments,
    phases=st.lists(finished_phases, max_size=3).map(tuple),
)
