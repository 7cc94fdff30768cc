"""Rules of the recovery machine that groups take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.decide.groups import (
    decide_pause_group,
    decide_resume_group,
    decide_update_group,
)
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.timers import open_gates
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS
from tests.pushed_rows import NewJob, rows_of
from tests.storage.recovery_values import STICKY, delays, options, queues, sessions
from tests.storage.recovery_world import World

groups = st.sampled_from(["g", "h"])
group_settings = st.sampled_from(
    [
        GroupSettings(),
        GroupSettings(concurrency=2),
        GroupSettings(max_waiting=4, on_dead_head=OnDeadHead.HOLD),
        GroupSettings(weight=5),
        GroupSettings(rate=RateLimit(1, 2_000, 2), concurrency=2),
    ]
)


def _options(own, group, *, fair):
    """Jobs of a serial group have no priority, and are never lifo."""
    out_of_order = group and not fair and (own.priority or own.rules.lifo)
    return DEFAULT_OPTIONS if out_of_order else own


class GroupRules(RuleBasedStateMachine):
    """Jobs of groups are pushed; groups pause, go on and change."""

    world: World

    @rule(
        queue=queues,
        jobs=st.lists(
            st.tuples(st.sampled_from(["", "g", "g", "h"]), options, delays), min_size=1, max_size=4
        ),
    )
    def push_grouped(self, queue, jobs):
        now, found = self.world.now, self.world.shard.queues.get(queue)
        fair = found is not None and found.settings.fair
        rows = rows_of(
            NewJob(
                b"g",
                _options(own, group, fair=fair),
                "",
                now.wall_ms + delay if delay else 0,
                ties=Ties(group),
            )
            for group, own, delay in jobs
        )
        try:
            decide_push(self.world.shard, now, Push(queue, DEFAULT_OPTIONS, rows))
        except Refused:
            return

    @rule(queue=queues, pushed=st.lists(groups, min_size=1, max_size=3), session=sessions)
    def push_sticky(self, queue, pushed, session):
        """Jobs that follow each other to one session, which may take no more of them."""
        shard, now = self.world.shard, self.world.now
        rows = rows_of(NewJob(b"s", STICKY, "", 0, ties=Ties(group)) for group in pushed)
        try:
            decide_push(shard, now, Push(queue, DEFAULT_OPTIONS, rows))
        except Refused:
            return
        shard.sticky.leave(shard.queues[queue], session)
        open_gates(shard, now)

    @rule(
        queue=queues,
        group=groups,
        wanted=group_settings,
        what=st.sampled_from(
            ["pause", "resume", "resume", "settings", "settings", "limit", "lift"]
        ),
    )
    def operate_on_a_group(self, queue, group, wanted, what):
        shard, now = self.world.shard, self.world.now
        if queue not in shard.queues:
            return
        if what == "pause":
            decide_pause_group(shard, now, queue, group, "somebody", "a reason")
        elif what == "resume":
            decide_resume_group(shard, now, queue, group)
        elif what in ("limit", "lift"):
            until_ms = now.wall_ms + 5_000 if what == "limit" else 0
            decide_limit_group(shard, now, queue, group, until_ms, "somebody", "429")
        else:
            decide_update_group(shard, now, queue, group, wanted, None)
