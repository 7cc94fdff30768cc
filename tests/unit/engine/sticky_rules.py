"""Rules of the random histories that sticky jobs take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.commands import Push
from jobline_server.engine.decide import timers
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobState
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.group_rules import GROUP
from tests.unit.engine.histories import OPTIONS, QUEUE, STICKY, WORKER
from tests.unit.engine.side_by_side import SideBySide, reached


class StickyRules(RuleBasedStateMachine):
    """Jobs follow each other to the same worker, until it takes no more."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()

    @rule(queue=QUEUE, groups=st.lists(GROUP, min_size=1, max_size=4))
    def push_sticky(self, queue, groups):
        rows = rows_of(NewJob(b"x", STICKY, "", 0, ties=Ties(group)) for group in groups)
        self.both.push(Push(queue, OPTIONS[0], rows))

    @rule(worker=WORKER)
    def takes_no_more(self, worker):
        """A worker drains, or its stream broke: what is reserved for it is everybody's."""
        both = self.both
        both.begin()
        for queue in both.shard.queues.values():
            both.shard.sticky.leave(queue, worker)
        timers.open_gates(both.shard, both.now)
        both.model.sticky.look(both.now.mono_ms)
        both.model.sticky.leave(worker)

    @invariant()
    def reservations_are_equal(self):
        model = self.both.model
        for job in model.live(JobState.READY):
            if job.group and model.groups.lets_run(job):
                owner = model.sticky.owner(job)
                assert self.both.shard.jobs[job.id].reserved_for == owner, job
                reached["job that is reserved"] += bool(owner)
        active = model.live(JobState.ACTIVE)
        reached["job that continues its group"] += any(job.continues for job in active)
