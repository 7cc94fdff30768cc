"""Rules of the random histories that batches take part in.

Batches here have no callbacks, so the model knows nothing of them: all that its jobs do must leave
the counts of their batches equal to a plain recount.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.batches import BatchSpec
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.batches import (
    decide_cancel_batch,
    decide_close_batch,
    decide_create_batch,
)
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import AckLevel, JobOptions
from tests.pushed_payloads import payloads_of
from tests.pushed_rows import NewJob, rows_of
from tests.unit.engine.histories import BACKOFF, QUEUE
from tests.unit.engine.side_by_side import LIVE, SideBySide, reached


class BatchRules(RuleBasedStateMachine):
    """Batches are created, get members, and are closed."""

    both: SideBySide

    def __init__(self) -> None:
        super().__init__()
        self.batches: dict[int, int] = {}
        """The members that each batch ever had, batches among them."""

    @rule(nested=st.booleans())
    def create_batch(self, nested):
        both = self.both
        open_ones = [one for one in self._records() if one.takes_members()]
        parent = open_ones[-1] if nested and open_ones else None
        if parent is not None and parent.spec.parent:
            return
        spec = BatchSpec(parent=0 if parent is None else parent.id)
        batch = decide_create_batch(both.shard, both.now, spec)
        self.batches[batch.id] = 0
        if parent is not None:
            self.batches[parent.id] += 1

    @rule(pick=st.integers(0, 5), queue=QUEUE, rows=st.integers(0, 2), payloads=st.integers(0, 3))
    def push_members(self, pick, queue, rows, payloads):
        known = [one for one in self._records() if one.takes_members()]
        if not known or not rows + payloads:
            return
        batch = known[pick % len(known)]
        options = JobOptions(lease_ms=2_300, backoff=BACKOFF, rules=JobRules(batch_id=batch.id))
        total = batch.total
        jobs = rows_of(NewJob(b"x", options) for _ in range(rows))
        block = payloads_of([b"y"] * payloads)
        self.both.push(Push(queue, options, jobs, block, level=AckLevel.BUFFERED))
        assert batch.total in {total, total + rows + payloads}
        self.batches[batch.id] += batch.total - total

    @rule(pick=st.integers(0, 5), cancels=st.booleans())
    def close_batch(self, pick, cancels):
        known, both = self._records(), self.both
        if known:
            batch = known[pick % len(known)]
            if cancels:
                decide_cancel_batch(both.shard, both.now, batch.id, "ann", "")
            else:
                decide_close_batch(both.shard, both.now, batch.id)

    @invariant()
    def batches_count_what_became_of_their_members(self):
        """G20: also over restarts."""
        live = [job.options.rules.batch_id for job in self.both.model.live(*LIVE)]
        records = self.both.shard.batches.records
        for batch in records.values():
            inner = [one for one in records.values() if one.spec.parent == batch.id]
            waits = sum(not one.completed_ms for one in inner)
            assert batch.total == self.batches[batch.id]
            assert batch.pending() == live.count(batch.id) + waits
            reached["batches that are complete"] += bool(batch.completed_ms)
            reached["batches with dead members"] += batch.ends.has_died

    def _records(self):
        return list(self.both.shard.batches.records.values())
