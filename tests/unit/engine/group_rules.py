"""Rules of the random histories that groups take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.commands import Push
from jobline_server.engine.decide import groups
from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobState
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.histories import DELAYS, GROUP_RATE, KIND, LEVELS, OPTIONS, QUEUE
from tests.unit.engine.reference_groups import ModelGroup
from tests.unit.engine.side_by_side import SideBySide, reached

GROUP = st.sampled_from(["g1", "g2"])
GROUP_SETTINGS = st.sampled_from(
    [
        GroupSettings(),
        GroupSettings(concurrency=2),
        GroupSettings(max_waiting=1),
        GroupSettings(on_dead_head=OnDeadHead.HOLD),
        GroupSettings(weight=3),
        GroupSettings(rate=GROUP_RATE),
        GroupSettings(rate=GROUP_RATE, concurrency=2),
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

    @invariant()
    def closed_groups_are_known(self):
        """G14: a group lets nothing out where the model says so, and for the same reason."""
        shard, model = self.both.shard, self.both.model
        for (queue, name), known in model.groups.groups.items():
            group = shard.queues[queue].groups.find(name)
            limited = None if group is None else group.limited
            used_up = limited is not None and group is not None and group.is_used_up
            assert used_up == (known.opens_ms is not None)
            assert (limited is not None and not used_up) == (known.limited_until_ms is not None)
            reached["group that has used up its rate"] += used_up
            reached["group limited for a time"] += limited is not None and not used_up
        assert shard.load.group_buckets == len(shard.group_rates)

    @rule(
        queue=QUEUE,
        group=GROUP,
        wanted=GROUP_SETTINGS,
        what=st.sampled_from(["pause", "resume", "resume", "settings", "limit", "lift"]),
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
        elif what in ("limit", "lift"):
            until_ms = both.now.wall_ms + 4_000 if what == "limit" else 0
            args = both.now, queue, group, until_ms, "somebody", "429"
            decide_limit_group(both.shard, *args)
            both.model.limit_group((queue, group), until_ms)
        elif known.settings != wanted:
            groups.decide_update_group(both.shard, both.now, queue, group, wanted, None)
            was_rated = known.settings.rate is not None
            known.settings = wanted
            if was_rated != (wanted.rate is not None):
                both.model.ask_groups(queue, group)
            model.go_on(queue, group)
            both.model.fairness.reopen(queue, group)
