"""Rules of the random histories that groups take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.commands import Push
from jobline_server.engine.decide import groups
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobState
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.histories import DELAYS, KIND, LEVELS, OPTIONS, QUEUE
from tests.unit.engine.reference_groups import ModelGroup
from tests.unit.engine.side_by_side import SideBySide, reached

GROUP = st.sampled_from(["g1", "g2"])
GROUP_SETTINGS = st.sampled_from(
    [
        GroupSettings(),
        GroupSettings(concurrency=2),
        GroupSettings(max_waiting=2),
        GroupSettings(on_dead_head=OnDeadHead.HOLD),
        GroupSettings(weight=3),
    ]
)


def _options(kind, group, *, fair):
    """Jobs of a serial group have no priority, and are never lifo."""
    own = OPTIONS[kind]
    return OPTIONS[0] if group and not fair and (own.rules.lifo or own.priority) else own


class GroupRules(RuleBasedStateMachine):
    """Jobs of groups are pushed; groups pause, go on and change."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()

    @rule(
        queue=QUEUE,
        jobs=st.lists(
            st.tuples(st.sampled_from(["", "g1", "g1", "g2"]), KIND, DELAYS), min_size=1, max_size=5
        ),
        level=LEVELS,
    )
    def push_grouped(self, queue, jobs, level):
        now_ms = self.both.now.wall_ms
        fair = self.both.model.settings(queue).fair
        rows = rows_of(
            NewJob(
                b"x",
                _options(kind, group, fair=fair),
                "",
                now_ms + delay if delay else 0,
                ties=Ties(group),
            )
            for group, kind, delay in jobs
        )
        self.both.push(Push(queue, OPTIONS[0], rows, level=level))

    @rule(
        queue=QUEUE,
        group=GROUP,
        wanted=GROUP_SETTINGS,
        what=st.sampled_from(["pause", "resume", "resume", "settings"]),
    )
    def operate_on_a_group(self, queue, group, wanted, what):
        both = self.both
        both.begin()
        if queue not in both.shard.queues:
            return
        model = both.model.groups
        known = model.groups.setdefault((queue, group), ModelGroup())
        if what == "pause":
            groups.decide_pause_group(both.shard, both.now, queue, group, "somebody", "a reason")
            ready = [job.id for job in both.model.live(JobState.READY)]
            model.pause(queue, group, ready)
            reached["group paused while jobs wait"] += bool(known.line)
        elif what == "resume":
            groups.decide_resume_group(both.shard, both.now, queue, group)
            if known.paused:
                known.paused = False
                model.go_on(queue, group)
                both.model.fairness.reopen(queue, group)
        elif known.settings != wanted:
            groups.decide_update_group(both.shard, both.now, queue, group, wanted, None)
            known.settings = wanted
            model.go_on(queue, group)
            both.model.fairness.reopen(queue, group)
