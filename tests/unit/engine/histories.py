"""What random histories are made of: jobs, settings, moments, and which lease a step is about."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import DeliveryMode, DependencyPolicy, JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE, UniqueMode, UniqueRule
from jobline_server.engine.values import (
    AckLevel,
    Backoff,
    JobOptions,
    Now,
    QueueSettings,
    Retention,
)
from tests.pushed_payloads import with_columns

START = Now(1_800_000_000_000, 1_000_500)
BACKOFF = Backoff(base_ms=2_000, max_delay_ms=3_000, jitter=0.0)
ONCE = JobRules(delivery_mode=DeliveryMode.ONCE)
SHORT = Retention(remove_on_fail=True, age_ms=3_000, count=2, delete_after_ms=1_000)
STICKY = JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(sticky=True))
OPTIONS = [
    JobOptions(lease_ms=2_300, backoff=BACKOFF),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, priority=1),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, name="mail", max_stalls=1),
    JobOptions(
        lease_ms=4_300,
        backoff=BACKOFF,
        priority=1,
        name="mail",
        max_attempts=0,
        rules=JobRules(retry_until_ms=START.wall_ms + 9_000),
    ),
    JobOptions(
        lease_ms=2_300,
        backoff=BACKOFF,
        max_attempts=1,
        retention=Retention(remove_on_complete=True),
        rules=JobRules(on_dead_head=OnDeadHead.HOLD),
    ),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(cost=2)),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=ONCE),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(min_worker_version="1.10")),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(slots=2, min_worker_version="1.2")),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(slots=4)),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, priority=1, max_attempts=2, rules=ONCE),
    JobOptions(
        lease_ms=2_300,
        backoff=Backoff(delays_ms=(1_000, 3_000), jitter=0.0),
        rules=JobRules(lifo=True, retry_until_ms=START.wall_ms + 5_000),
    ),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, name="mail", rules=JobRules(lifo=True, ttl_ms=0)),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(ttl_ms=3_000)),
    JobOptions(lease_ms=9_300, backoff=BACKOFF, max_attempts=1, rules=JobRules(timeout_ms=2_000)),
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(phases=("one", "two"))),
    STICKY,
    JobOptions(lease_ms=2_300, backoff=BACKOFF, max_attempts=1, retention=SHORT),
]
UNIQUE_OPTIONS = [
    JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(unique=rule))
    for rule in [
        *(UniqueRule(mode) for mode in UniqueMode),
        *(UniqueRule(mode, 3_000) for mode in UniqueMode),
        UniqueRule(UniqueMode.DEBOUNCE, max_wait_ms=5_000),
        NO_UNIQUE_RULE,
    ]
]
GROUP_RATE = RateLimit(1, 2_000, 2)
SETTINGS = [
    QueueSettings(),
    QueueSettings(unique_mode=UniqueMode.REPLACE, unique_ttl_ms=60_000, unique_max_wait_ms=2_000),
    QueueSettings(max_waiting=8, max_attempts=2, expired_to_dead=True),
    QueueSettings(rate=RateLimit(2, 1_000, 3), timeout_ms=2_000, expired_to_dead=True),
    QueueSettings(rate=RateLimit(1, 2_000), concurrency=3, max_waiting_bytes=30),
    QueueSettings(concurrency=2, max_stalls=0, ttl_ms=4_000, expired_to_dead=True),
    QueueSettings(max_stalls=0, non_retryable_error_types=("Fatal",)),
    QueueSettings(delivery_mode=DeliveryMode.ONCE),
    QueueSettings(max_attempts=1, dead_letters=DeadLetters(auto_retry=AutoRetry(2_000, 2))),
    QueueSettings(disconnect_grace_ms=1_300),
    QueueSettings(group=GroupSettings(rate=GROUP_RATE, max_waiting=2)),
    QueueSettings(group=GroupSettings(concurrency=2, on_dead_head=OnDeadHead.HOLD)),
    QueueSettings(on_dependency_failure=DependencyPolicy.CANCEL, block_timeout_ms=5_000),
    QueueSettings(retention=Retention(age_ms=4_000, count=3, delete_after_ms=2_000)),
    QueueSettings(fair=True),
    QueueSettings(ageing=Ageing(2_000)),
    QueueSettings(ageing=Ageing(1_000, 2, 1), fair=True),
    QueueSettings(fair=True, group=GroupSettings(concurrency=2, on_dead_head=OnDeadHead.HOLD)),
]


def few_of(count: int, most: int, key: str) -> st.SearchStrategy[int]:
    """Numbers below `count`, of which each history draws a few that it keeps to: what only several
    steps with the same option come to would else get rarer with every option there is.
    """
    numbers = st.lists(st.integers(0, count - 1), min_size=1, max_size=most, unique=True)
    return st.shared(numbers, key=key).flatmap(st.sampled_from)


KIND = few_of(len(OPTIONS), 5, "kinds")
SETTING = few_of(len(SETTINGS), 3, "settings").map(SETTINGS.__getitem__)
QUEUE = st.sampled_from(["a", "b"])
PAYLOADS = st.lists(st.sampled_from([b"", b"x", b"yyy"]), max_size=4).flatmap(with_columns)
DELAYS = st.sampled_from([0, 0, 1_500, 4_000])
PICKS = st.lists(st.integers(0, 400), min_size=1, max_size=6)
WORKER = st.sampled_from(["w1", "w2"])
LEVELS = st.sampled_from([None, None, None, AckLevel.MEMORY])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([b"x", b"yyy"]),
        KIND,
        st.sampled_from(["", "", "k1", "k2"]),
        DELAYS,
    ),
    max_size=3,
)
UNIQUE_KEYS = st.sampled_from(["u1", "u2"])
UNIQUE_ROWS = st.lists(
    st.tuples(
        st.sampled_from([b"x", b"yyy"]),
        st.sampled_from(UNIQUE_OPTIONS),
        st.sampled_from(["", "", "", "k1"]),
        DELAYS,
        st.builds(Ties, st.sampled_from(["", "", "", "g1"]), st.sampled_from(["u1", "u1", "u2"])),
    ),
    min_size=1,
    max_size=3,
)
# Mostly as long as leases and pauses take; now and then a coffee, a request's window, a day.
MOMENTS = st.sampled_from(
    [0, 1_000, 1_000, 2_000, 2_000, 3_000, 3_000, 5_000, 5_000, 40_000, 700_000, 90_000_000]
)
