"""Rules of the recovery machine that schedules take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.schedules import (
    decide_delete_schedule,
    decide_pause_schedule,
    decide_put_schedule,
    decide_resume_schedule,
)
from jobline_server.engine.decide.ticks import decide_tick, decide_trigger
from jobline_server.engine.schedule import (
    NONE_DUE,
    DueRuns,
    JobTemplate,
    Missed,
    Overlap,
    ScheduleSettings,
)
from jobline_server.engine.ties import Ties
from tests.storage.recovery_values import options, queues
from tests.storage.recovery_world import World

names = st.sampled_from(["s", "t"])
templates = st.builds(
    JobTemplate,
    options,
    st.sampled_from([Ties(), Ties("g"), Ties("", "k")]),
    st.sampled_from([b"", b"scheduled"]),
    st.sampled_from([0, 5_000]),
)


class ScheduleRules(RuleBasedStateMachine):
    """Schedules come, change, run and go; times are as the runtime would compute them."""

    world: World

    @rule(
        name=names,
        queue=queues,
        job=templates,
        overlap=st.sampled_from(Overlap),
        missed=st.sampled_from(Missed),
        limit=st.sampled_from([0, 0, 3]),
    )
    def put_schedule(self, name, queue, job, overlap, missed, limit):
        shard, now = self.world.shard, self.world.now
        settings = ScheduleSettings(
            queue, every_ms=2_000, limit=limit, job=job, overlap=overlap, missed=missed
        )
        next_ms = now.wall_ms + 2_000
        try:
            decide_put_schedule(shard, now, name, settings, anchor_ms=now.wall_ms, next_ms=next_ms)
        except Refused:
            return

    @rule(name=names, what=st.sampled_from(["pause", "resume", "trigger", "trigger", "delete"]))
    def operate_on_a_schedule(self, name, what):
        shard, now = self.world.shard, self.world.now
        try:
            if what == "pause":
                decide_pause_schedule(shard, now, name, "ops", "holidays")
            elif what == "resume":
                decide_resume_schedule(shard, now, name, now.wall_ms + 2_000)
            elif what == "trigger":
                decide_trigger(shard, now, name, has_worker=True)
            else:
                decide_delete_schedule(shard, now, name)
        except Refused:
            return

    @rule(has_worker=st.booleans())
    def run_schedules(self, has_worker):
        """What the timer loop does."""
        self.run_due(has_worker=has_worker)

    def run_due(self, *, has_worker: bool) -> None:
        """Runs all that is due, each run named by its time."""
        shard, now = self.world.shard, self.world.now
        for schedule in list(shard.schedules.pop_due(now.wall_ms)):
            first_ms = schedule.next_ms
            times = tuple(range(first_ms, now.wall_ms + 1, 2_000))[-101:] if first_ms else ()
            runs = NONE_DUE
            if times:
                runs = DueRuns(times, 0, times[-1] + 2_000)
            decide_tick(shard, now, schedule.name, runs, has_worker=has_worker)
            shard.schedules.arm(schedule)

    @invariant()
    def schedules_know_of_their_last_jobs(self):
        """Whether they have ended: also after a crash, and when they come back."""
        for schedule in self.world.shard.schedules.by_name.values():
            assert schedule.settings.queue in self.world.shard.queues
            assert schedule.armed_ms is None or not schedule.paused
            if schedule.is_running():
                assert self.world.shard.state_of(schedule.last_job_id) is not None
            elif schedule.last_job_id:
                assert self.world.shard.state_of(schedule.last_job_id) is None
