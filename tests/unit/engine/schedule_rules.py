"""Rules of the random histories that schedules take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.decide import schedules
from jobline_server.engine.decide.ticks import decide_tick
from jobline_server.engine.schedule import (
    NONE_DUE,
    DueRuns,
    JobTemplate,
    Missed,
    Overlap,
    ScheduleSettings,
)
from jobline_server.engine.values import RevokeReason
from tests.unit.engine.histories import OPTIONS, QUEUE
from tests.unit.engine.reference_limits import ModelQueue
from tests.unit.engine.reference_schedules import EVERY_MS, ModelSchedule
from tests.unit.engine.side_by_side import SideBySide, reached

NAME = st.sampled_from(["s", "t"])


class ScheduleRules(RuleBasedStateMachine):
    """Schedules come, change, pause, run and go with their queues."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()
        self.schedules: dict[str, ModelSchedule] = {}

    @rule(
        name=NAME,
        queue=QUEUE,
        kind=st.integers(0, 2),
        overlap=st.sampled_from(Overlap),
        missed=st.sampled_from(Missed),
        limit=st.sampled_from([0, 0, 0, 2]),
    )
    def put_schedule(self, name, queue, kind, overlap, missed, limit):
        both, known = self.both, self.schedules.get(name)
        both.begin()
        queue = queue if known is None else known.queue
        options, now_ms = OPTIONS[kind], both.now.wall_ms
        settings = ScheduleSettings(
            queue,
            every_ms=EVERY_MS,
            limit=limit,
            job=JobTemplate(options, payload=b"s"),
            overlap=overlap,
            missed=missed,
        )
        next_ms = now_ms + EVERY_MS
        schedules.decide_put_schedule(
            both.shard, both.now, name, settings, anchor_ms=now_ms, next_ms=next_ms
        )
        both.model.queues.setdefault(queue, ModelQueue())
        if known is None:
            self.schedules[name] = ModelSchedule(
                name, queue, options, overlap, missed, limit, next_ms
            )
            return
        known.options, known.overlap, known.missed = options, overlap, missed
        known.limit, known.next_ms = limit, next_ms

    @rule(name=NAME, what=st.sampled_from(["pause", "resume", "resume", "delete"]))
    def operate_on_a_schedule(self, name, what):
        both, known = self.both, self.schedules.get(name)
        if known is None:
            return
        both.begin()
        if what == "delete":
            schedules.decide_delete_schedule(both.shard, both.now, name)
            del self.schedules[name]
        elif what == "pause":
            schedules.decide_pause_schedule(both.shard, both.now, name, "ops", "")
            known.paused = True
        elif known.paused:
            known.paused, known.next_ms = False, both.now.wall_ms + EVERY_MS
            schedules.decide_resume_schedule(both.shard, both.now, name, known.next_ms)

    @rule(passed_ms=st.sampled_from([0, 0, EVERY_MS, EVERY_MS, 3 * EVERY_MS, 70_000]))
    def run_schedules(self, passed_ms):
        both = self.both
        both.wait(passed_ms)
        both.commit(0)
        now_ms = both.now.wall_ms
        for schedule in list(both.shard.schedules.pop_due(now_ms)):
            both.begin()
            both.model.hand_over()
            known = self.schedules[schedule.name]
            if known.is_due(now_ms, both.model):
                known.tick(both.model, now_ms, both.shard.next_id())
            first_ms = schedule.next_ms
            times = tuple(range(first_ms, now_ms + 1, EVERY_MS)) if first_ms else ()
            runs = NONE_DUE
            if times:
                runs = DueRuns(times[-101:], len(times[:-101]), times[-1] + EVERY_MS)
            decide_tick(both.shard, both.now, schedule.name, runs, has_worker=True)
            both.shard.schedules.arm(schedule)
            self._note(known)

    def _note(self, known: ModelSchedule) -> None:
        for job_id in known.cancelled:
            job = self.both.model.jobs[job_id]
            assert job.holder is not None
            revoked = (job.holder.worker, job_id, job.delivery, RevokeReason.CANCELLED)
            self.both.expected_revokes.append(revoked)
        reached["schedule that replaced a job that ran"] += bool(known.cancelled)
        known.cancelled.clear()
        reached["schedule that has run"] += bool(known.ids)
        reached["run that waits"] += bool(known.waiting_ms)
        reached["run that was missed"] += bool(known.left_out)
        reached.update(f"run skipped: {reason.name}" for _, reason in known.skips[-1:])

    @invariant()
    def schedules_are_equal(self):
        """Those of deleted queues are gone."""
        found = self.both.shard.schedules.by_name
        for name, known in list(self.schedules.items()):
            if name not in found and known.queue not in self.both.model.queues:
                del self.schedules[name]
        assert {
            name: (one.count, one.skipped, one.missed, one.next_ms, one.waiting_ms, one.paused)
            for name, one in found.items()
        } == {
            name: (
                len(one.ids),
                len(one.skips),
                one.left_out,
                one.next_ms,
                one.waiting_ms,
                one.paused,
            )
            for name, one in self.schedules.items()
        }
        for name, one in found.items():
            known = self.schedules[name]
            assert one.last_job_id == (known.ids[-1] if known.ids else 0)
            last = (one.skip_ms, one.skip_reason) if one.skip_reason is not None else None
            assert last == (known.skips[-1] if known.skips else None)
