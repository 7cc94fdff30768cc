"""Rules of the random histories that named limiters take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide import limiters
from jobline_server.engine.limiters import AGAIN_MS
from jobline_server.engine.limits import SLICE_ITEMS
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions, Now
from tests.pushed_payloads import payloads_of
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.histories import BACKOFF, LEVELS, OPTIONS, QUEUE, few_of
from tests.unit.engine.side_by_side import SideBySide, reached

NAME = st.sampled_from(["api", "disk"])
# Those of one limiter cost the same: one in its line that costs more holds up those behind it.
LIMITED = [
    OPTIONS[0],
    *(
        JobOptions(lease_ms=2_300, backoff=BACKOFF, priority=priority, rules=rules)
        for priority, rules in (
            (0, JobRules(limiters=("api",))),
            (1, JobRules(limiters=("api",), lifo=True)),
            (0, JobRules(limiters=("api", "disk"))),
            (0, JobRules(limiters=("disk",), min_worker_version="1.10")),
            (0, JobRules(limiters=("disk",), slots=2, timeout_ms=2_000)),
        )
    ),
]
KIND = few_of(len(LIMITED), 3, "limited")
WANTED = st.sampled_from(
    [(None, 1), (None, 3), (RateLimit(1, 1_000, 2), None), (RateLimit(2, 3_000, 4), 2)]
)


def open_limiters(both: SideBySide) -> None:
    """Opens all lanes whose jobs may start: a few at first, more while nobody takes."""
    now = both.now
    for later_ms in range(0, 16, AGAIN_MS):
        both.shard.limiters.open_due(Now(now.wall_ms, now.mono_ms + later_ms), SLICE_ITEMS)


class LimiterRules(RuleBasedStateMachine):
    """Jobs that pass limiters are pushed; limiters come, change, are empty and go."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()
        self.has_limiters = False

    @initialize(has_limiters=st.booleans())
    def limiters_are_there(self, has_limiters):
        """In every other history: limiters leave the others as they were."""
        self.has_limiters = has_limiters
        if not has_limiters:
            return
        self._put_limiter("api", (RateLimit(1, 1_000, 2), 3))
        self._put_limiter("disk", (None, 2))

    @precondition(lambda self: self.has_limiters)
    @rule(
        queue=QUEUE,
        kinds=st.lists(KIND, max_size=4),
        shared=KIND,
        count=st.integers(0, 3),
        level=LEVELS,
    )
    def push_limited(self, queue, kinds, shared, count, level):
        rows = rows_of(NewJob(b"x", LIMITED[kind]) for kind in kinds)
        block = payloads_of([b"y"] * count)
        self.both.push(Push(queue, LIMITED[shared], rows, block, level=level))

    @precondition(lambda self: self.has_limiters)
    @rule(
        name=NAME,
        wanted=WANTED,
        what=st.sampled_from(["put", "put", "empty", "lift", "worker", "delete"]),
    )
    def operate_on_a_limiter(self, name, wanted, what):
        if what == "put":
            self._put_limiter(name, wanted)
        elif what == "delete":
            self._delete_limiter(name)
        else:
            self._empty_limiter(name, what)

    @invariant()
    def limiters_count_what_is_active(self):
        """G14: also over restarts; and who has nothing to count is forgotten."""
        model = self.both.model.limiters
        for name, limiter in self.both.shard.limiters.by_name.items():
            assert limiter.active == model.active(name), name
            assert not limiter.is_over(), name
            reached["lanes that wait for a limiter"] += bool(limiter.line)

    def _put_limiter(self, name, wanted):
        both = self.both
        rate, most = wanted
        limiters.decide_put_limiter(both.shard, both.now, name, rate, most)
        both.model.limiters.put(name, rate, most, both.now.mono_ms)

    def _empty_limiter(self, name, what):
        both = self.both
        known = both.model.limiters.by_name.get(name)
        until_ms = 0 if what == "lift" else both.now.wall_ms + 3_000
        if what == "worker":
            limiters.decide_worker_limit(both.shard, both.now, name, until_ms, "w1")
            until_ms = max(until_ms, known.limited_until_ms if known else 0)
        else:
            try:
                limiters.decide_empty_limiter(both.shard, both.now, name, until_ms, "ann", "429")
            except Refused:
                assert known is None
                return
        if known is not None:
            known.limited_until_ms = until_ms

    def _delete_limiter(self, name):
        both = self.both
        if both.model.limiters.by_name.pop(name, None) is not None:
            limiters.decide_delete_limiter(both.shard, both.now, name)
