"""Rules of the recovery machine that named limiters take part in."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine import limits
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
    decide_worker_limit,
)
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.limiter_counts import active_of
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from tests.pushed_payloads import payloads_of
from tests.pushed_rows import NewJob, rows_of
from tests.storage.recovery_values import queues
from tests.storage.recovery_world import World

LIMITED = (
    JobOptions(rules=JobRules(limiters=("api",))),
    JobOptions(name="mail", rules=JobRules(limiters=("api", "disk"), cost=2)),
    JobOptions(rules=JobRules(limiters=("disk",), lifo=True)),
)
names = st.sampled_from(["api", "disk"])
limited = st.sampled_from(LIMITED)
wanted_limits = st.sampled_from([(RateLimit(1, 1_000, 3), None), (None, 2), (RateLimit(3), 4)])


class LimiterRules(RuleBasedStateMachine):
    """Jobs that pass limiters are pushed; limiters come, change, are empty and go."""

    world: World

    @rule(
        queue=queues,
        own=st.lists(limited, max_size=3),
        shared=limited,
        count=st.integers(0, 5),
        wanted=st.none() | wanted_limits,
    )
    def push_limited(self, queue, own, shared, count, wanted):
        shard, now = self.world.shard, self.world.now
        for name in ("api", "disk") if wanted else ():
            decide_put_limiter(shard, now, name, *wanted)
        rows = rows_of(NewJob(b"l", options) for options in own)
        block = payloads_of([b"%d" % number for number in range(count)])
        try:
            decide_push(shard, now, Push(queue, shared, rows, block))
        except Refused:
            return

    @rule(
        name=names,
        wanted=wanted_limits,
        what=st.sampled_from(["put", "put", "empty", "lift", "worker", "delete"]),
    )
    def operate_on_a_limiter(self, name, wanted, what):
        shard, now = self.world.shard, self.world.now
        try:
            if what == "put":
                decide_put_limiter(shard, now, name, *wanted)
            elif what == "delete":
                decide_delete_limiter(shard, now, name)
            elif what == "worker":
                decide_worker_limit(shard, now, name, now.wall_ms + 30_000, "w")
            else:
                until_ms = now.wall_ms + 5_000 if what == "empty" else 0
                decide_empty_limiter(shard, now, name, until_ms, "ops", "429")
        except Refused:
            return

    @rule()
    def open_lanes(self):
        self.world.shard.limiters.open_due(self.world.now, limits.SLICE_ITEMS)

    @invariant()
    def limiters_count_what_is_active(self):
        """G14: exactly, also after a crash."""
        shard = self.world.shard
        found: Counter[str] = Counter()
        for rules, count in active_of(shard.jobs.values(), shard.lots.lots.values()):
            found.update(dict.fromkeys(rules.limiters, count))
        counted = {name: one.active for name, one in shard.limiters.by_name.items() if one.active}
        assert counted == dict(found)
