"""Rules of the random histories that operators take part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide import admin, queues
from jobline_server.engine.decide.update import JobChange, decide_forget_unique_key, decide_update
from jobline_server.engine.values import JobState, RevokeReason
from tests.unit.engine.histories import PICKS, QUEUE, SETTING, UNIQUE_KEYS
from tests.unit.engine.retention_rules import put_back
from tests.unit.engine.side_by_side import SideBySide


class OperatorRules(RuleBasedStateMachine):
    """Jobs are cancelled, promoted, deleted and put back; queues pause, change and go."""

    def __init__(self) -> None:
        super().__init__()
        self.both = SideBySide()

    @rule(picks=PICKS, what=st.sampled_from(["cancel", "promote", "delete", "retry", "retry"]))
    def operate_on_jobs(self, picks, what):
        deeds = {"cancel": self._cancel, "promote": self._promote, "delete": self._delete}
        deeds.get(what, self._retry)(picks)

    @rule()
    def retry_dead_jobs_that_are_due(self):
        """As the server does by itself; when a job is due was decided as it died."""
        both = self.both
        both.begin()
        both.note_endings()
        due = [
            job.id
            for job in both.model.live(JobState.DEAD)
            if job.retry_ms and job.retry_ms <= both.now.wall_ms
        ]
        pairs = [(both.kept[i][1], both.kept[i][0]) for i in due]
        assert all(record.retry_ms <= both.now.wall_ms for record, _ in pairs)
        skipped = admin.decide_retry(both.shard, both.now, pairs, automatic=True)
        assert skipped == both.model.retry(due, automatic=True)

    @rule(
        queue=QUEUE,
        yes=st.booleans(),
        wanted=SETTING,
        what=st.sampled_from(["pause", "limit", "settings", "settings", "delete"]),
    )
    def operate_on_a_queue(self, queue, yes, wanted, what):
        if what == "pause":
            self._pause_or_resume(queue, yes)
        elif what == "limit":
            self._limit(queue, yes)
        elif what == "delete":
            self._delete_queue(queue, yes)
        else:
            self._change_settings(queue, wanted)

    @rule(
        picks=PICKS,
        payload=st.sampled_from([None, b"", b"another"]),
        priority=st.sampled_from([None, None, 0, 1]),
        delay=st.sampled_from([None, None, 0, 1_500]),
    )
    def update(self, picks, payload, priority, delay):
        """A job that waits is changed."""
        both = self.both
        both.begin()
        (job_id, *_) = both.ids_at(picks)
        change = JobChange(payload, priority, delay)
        was_in_lot = job_id not in both.shard.jobs
        try:
            decide_update(both.shard, both.now, job_id, change)
            found = True
        except Refused as refused:
            if refused.kind is not RefusalKind.WRONG_STATE:
                return
            found = False
        assert found == both.model.update(job_id, change, was_in_lot=was_in_lot)

    @rule(queue=QUEUE, key=UNIQUE_KEYS)
    def forget_a_unique_key(self, queue, key):
        """Whoever holds it goes on without."""
        both = self.both
        both.begin()
        try:
            job_id = decide_forget_unique_key(both.shard, both.now, queue, key)
        except Refused:
            job_id = 0
        assert job_id == both.model.forget_unique_key(queue, key)

    def _cancel(self, picks):
        both = self.both
        both.begin()
        ids = list(dict.fromkeys(both.ids_at(picks)))
        active = [job for job in both.model.live(JobState.ACTIVE) if job.id in ids]
        _, _, skipped = admin.decide_cancel(both.shard, both.now, ids)
        assert skipped == both.model.cancel(ids)
        both.expected_revokes += [
            (job.holder.worker, job.id, job.delivery, RevokeReason.CANCELLED)
            for job in active
            if job.holder is not None
        ]

    def _promote(self, picks):
        both = self.both
        both.begin()
        ids = both.ids_at(picks)
        skipped = admin.decide_promote(both.shard, both.now, ids)
        assert skipped == both.model.promote(ids)

    def _delete(self, picks):
        both = self.both
        both.begin()
        ids = list(dict.fromkeys(both.ids_at(picks)))
        count, skipped = admin.decide_delete_waiting(both.shard, both.now, ids)
        assert skipped == both.model.delete(ids)
        assert count == len(ids) - len(skipped)

    def _retry(self, picks):
        both = self.both
        both.begin()
        ended = list(dict.fromkeys(i for i in both.ids_at(picks) if i in both.kept))
        wanted = [i for i in ended if i in both.model.jobs]
        put_back(both, wanted)

    def _pause_or_resume(self, queue, paused):
        both = self.both
        if queue not in both.shard.queues:
            return
        if paused:
            queues.decide_pause_queue(both.shard, both.now, queue, "somebody", "a reason")
        else:
            queues.decide_resume_queue(both.shard, both.now, queue)
        both.model.queues[queue].paused = paused

    def _limit(self, queue, yes):
        both = self.both
        if queue not in both.shard.queues:
            return
        until_ms = both.now.wall_ms + 4_000 if yes else 0
        queues.decide_limit_queue(both.shard, both.now, queue, until_ms, "somebody", "429")
        both.model.queues[queue].limited_until_ms = until_ms

    def _change_settings(self, queue, wanted):
        both = self.both
        both.begin()
        queues.decide_update_queue(both.shard, both.now, queue, wanted, None)
        both.model.set_settings(queue, wanted)

    def _delete_queue(self, queue, force):
        both = self.both
        both.begin()
        held = [job for job in both.model.live(JobState.ACTIVE) if job.queue == queue]
        if queue not in both.shard.queues:
            return
        try:
            queues.decide_delete_queue(both.shard, both.now, queue, force=force)
        except Refused:
            assert held
            assert not force
            return
        assert force or not held
        both.expected_revokes += [
            (job.holder.worker, job.id, job.delivery, RevokeReason.QUEUE_DELETED)
            for job in held
            if job.holder is not None
        ]
        both.model.delete_queue(queue)
        both.kept = {i: kept for i, kept in both.kept.items() if kept[1].queue != queue}
