"""What the rules of the recovery machine choose from."""

from __future__ import annotations

from hypothesis import strategies as st

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.dead_letters import AutoRetry, DeadLetters
from jobline_server.engine.decide.update import JobChange
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import DeliveryMode, JobRules
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    Backoff,
    JobOptions,
    LogLevel,
    QueueSettings,
    Retention,
)

STICKY = JobOptions(rules=JobRules(sticky=True))
OPTIONS = (
    DEFAULT_OPTIONS,
    JobOptions(name="mail"),
    JobOptions(name="mail", priority=7, max_stalls=0, lease_ms=2_000),
    JobOptions(name="bulk", priority=-5, max_attempts=1),
    JobOptions(retention=Retention(remove_on_complete=True)),
    JobOptions(rules=JobRules(delivery_mode=DeliveryMode.ONCE), max_attempts=2),
    JobOptions(rules=JobRules(slots=3)),
    JobOptions(rules=JobRules(slots=3)),
    JobOptions(name="mail", rules=JobRules(lifo=True)),
    JobOptions(rules=JobRules(ttl_ms=20_000, timeout_ms=9_000)),
    JobOptions(backoff=Backoff(delays_ms=(500,)), rules=JobRules(retry_until_ms=1)),
    JobOptions(rules=JobRules(phases=("one", "two"))),
    STICKY,
)
SETTINGS = (
    QueueSettings(),
    QueueSettings(max_attempts=2, ttl_ms=40_000, timeout_ms=2_000),
    QueueSettings(ttl_ms=10_000, expired_to_dead=True),
    QueueSettings(max_attempts=2, lease_ms=5_000, rate=RateLimit(5, 1_000, 9), concurrency=6),
    QueueSettings(min_ack_level=AckLevel.FSYNCED, retention=Retention(remove_on_fail=True)),
    QueueSettings(group=GroupSettings(rate=RateLimit(1, 2_000), concurrency=3)),
    QueueSettings(max_attempts=1, dead_letters=DeadLetters(auto_retry=AutoRetry(1_000, 2))),
    QueueSettings(fair=True, ageing=Ageing(1_000)),
    QueueSettings(ageing=Ageing(2_000, 4, 9)),
    QueueSettings(fair=True, max_attempts=2, lease_ms=5_000),
)
queues = st.sampled_from(["alpha", "beta"])
options = st.sampled_from(OPTIONS)
delays = st.sampled_from([0, 0, 0, 1_000, 30_000])
levels = st.sampled_from([None, None, None, AckLevel.BUFFERED, AckLevel.MEMORY])
picks = st.lists(st.integers(0, 30), min_size=1, max_size=6)
sessions = st.sampled_from(["", "one", "two"])
request_ids = st.sampled_from([b"", b"", b"r1", b"r2", b"call", b"call"])
lots = st.integers(2, 12).map(lambda count: [b"%d" % at * (at + 1) for at in range(count)])
reported = st.sampled_from([(), (NewLine("begun"), NewLine("odd", LogLevel.WARNING))])
"""Lines for the log of a job."""
new_jobs = st.lists(
    st.tuples(options, st.sampled_from(["", "", "k1", "k2"]), delays), min_size=1, max_size=4
)
changes = st.builds(
    JobChange,
    payload=st.sampled_from([None, b"", b"another one"]),
    priority=st.sampled_from([None, 0, 7]),
    delay_ms=st.sampled_from([None, 0, 30_000]),
)
