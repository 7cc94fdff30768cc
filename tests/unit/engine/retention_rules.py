"""Rules of the random histories that the retention of ended jobs takes part in."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.values import JobState, QueueSettings, Retention
from tests.unit.engine import reference_retention
from tests.unit.engine.histories import QUEUE
from tests.unit.engine.side_by_side import SideBySide, reached

FEW = QueueSettings(retention=Retention(count=1), expired_to_dead=True)


class RetentionRules(RuleBasedStateMachine):
    """Ended jobs become STALE, are deleted, and are evicted."""

    both: SideBySide

    @rule(
        queue=QUEUE,
        keeps_few=st.sampled_from([False, False, True]),
        wait_ms=st.sampled_from([0, 0, 6_000, 6_000, 50_000]),
        is_undone=st.booleans(),
    )
    def retain(self, queue, keeps_few, wait_ms, is_undone):
        """What the periodic task does; which jobs it finds is part of what is compared."""
        both = self.both
        if keeps_few:
            both.begin()
            decide_update_queue(both.shard, both.now, queue, FEW, None)
            both.model.set_settings(queue, FEW)
        both.wait(wait_ms)
        both.tell()
        both.note_endings()
        both.begin()
        counts = both.run_retention()
        assert counts == reference_retention.retain(both.model)
        # A dead head that was evicted lets its group go on before anybody puts a job back.
        both.place_freed()
        for name, count in counts.items():
            reached[f"retention: {name}"] += count
        if is_undone:
            put_back(both, [job.id for job in both.model.live(JobState.STALE)][:2])


def put_back(both: SideBySide, ids: list[int]) -> None:
    """Somebody retries jobs that have ended; live ones are left alone."""
    pairs = [(both.kept[i][1], both.kept[i][0]) for i in ids]
    stale = {i for i in ids if both.model.jobs[i].state is JobState.STALE}
    skipped = decide_retry(both.shard, both.now, pairs)
    assert skipped == both.model.retry(ids)
    reached["STALE job put back"] += len(stale - set(skipped))
