"""Rules of the recovery machine that batches take part in. Their members are in the same shard;
`test_batch_machine` has two.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobline_server.engine.batches import BatchSpec, Callback
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.decide.batches import (
    decide_cancel_batch,
    decide_close_batch,
    decide_create_batch,
    settle_batches,
)
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from tests.pushed_payloads import payloads_of
from tests.pushed_rows import NewJob, rows_of
from tests.storage.recovery_values import queues
from tests.storage.recovery_world import SHARD, World

CALLED = Callback("called", SHARD, DEFAULT_OPTIONS)
SPEC = BatchSpec("n", on_success=CALLED, on_complete=CALLED, on_first_death=CALLED)


class BatchRules(RuleBasedStateMachine):
    """Batches are created, get members, are closed and cancelled; callbacks are pushed."""

    world: World

    @rule(pick=st.none() | st.integers(0, 5))
    def create_batch(self, pick):
        shard, now = self.world.shard, self.world.now
        known = [*shard.batches.records]
        parent = known[pick % len(known)] if known and pick is not None else 0
        try:
            decide_create_batch(shard, now, replace(SPEC, parent=parent))
        except Refused:
            return

    @rule(pick=st.integers(0, 5), queue=queues, rows=st.integers(0, 2), payloads=st.integers(0, 4))
    def push_members(self, pick, queue, rows, payloads):
        shard, now = self.world.shard, self.world.now
        known = [*shard.batches.records]
        if not known or not rows + payloads:
            return
        options = JobOptions(rules=JobRules(batch_id=known[pick % len(known)]))
        jobs = rows_of(NewJob(b"x", options) for _ in range(rows))
        block = payloads_of([b"%d" % number for number in range(payloads)])
        try:
            decide_push(shard, now, Push(queue, options, jobs, block))
        except Refused:
            return

    @rule(pick=st.integers(0, 5), how=st.sampled_from(["close", "close", "cancel", "settle"]))
    def operate_on_a_batch(self, pick, how):
        shard, now = self.world.shard, self.world.now
        known = [*shard.batches.records]
        if how == "settle":
            settle_batches(shard, now, 10)
        elif known and how == "close":
            decide_close_batch(shard, now, known[pick % len(known)])
        elif known:
            decide_cancel_batch(shard, now, known[pick % len(known)], "ann", "")

    @invariant()
    def batches_wait_for_their_live_members(self):
        """G20: also after a crash."""
        table = self.world.shard.batches
        for batch in table.records.values():
            inner = [table.records[one] for one in table.children.get(batch.id, ())]
            waits = sum(not one.completed_ms for one in inner)
            assert batch.pending() == table.live.get(batch.id, 0) + waits
