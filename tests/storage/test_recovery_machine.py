"""The proof of storage: whatever is asked in whatever order, and wherever it breaks off, the shard
that recovers is the shard that was at its last commit.

Random commands meet random commits, checkpoints in slices with commands between them, writes of the
finished file, messages to and from another shard, and crashes of either. After each step all
invariants hold; after each crash the recovered image equals the one kept aside at the last commit,
every ended job reads back as it ended, and in the end each message was applied once.

`make model EXAMPLES=5000` looks further, with another seed each time.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from jobline_server.engine import invariants, limits
from jobline_server.engine.decide.queues import decide_delete_idle_queues, decide_delete_queue
from jobline_server.engine.limits import DAY_MS, HOUR_MS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import JobState
from jobline_server.storage.kinds import lots
from tests.examples import EXAMPLES
from tests.shard_image import counting_at, image_of
from tests.storage.batch_rules import BatchRules
from tests.storage.flow_rules import FlowRules
from tests.storage.group_rules import GroupRules
from tests.storage.limiter_rules import LimiterRules
from tests.storage.recovery_values import OPTIONS, queues, sessions
from tests.storage.schedule_rules import ScheduleRules
from tests.storage.unique_rules import UniqueKeyRules
from tests.storage.update_rules import UpdateRules
from tests.storage.webhook_rules import PENDING_MAX, WebhookRules

# Under a minute of a core; telling a failure in its shortest form takes minutes.
pytestmark = pytest.mark.timeout(0 if EXAMPLES else 900)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lots of a few jobs count as large, and few deliveries of webhooks as too many."""
    monkeypatch.setattr(lots, "APART_BYTES_MIN", 20)
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_MAX", PENDING_MAX)


class RecoveryMachine(
    UniqueKeyRules,
    UpdateRules,
    GroupRules,
    LimiterRules,
    FlowRules,
    ScheduleRules,
    BatchRules,
    WebhookRules,
):
    """One shard under everything that can be done to it."""

    # Time, and lines that break.

    @rule(passed_ms=st.sampled_from([100, 2_500, 6_000, 40_000, 40_000, HOUR_MS, 25 * HOUR_MS]))
    def time_passes(self, passed_ms):
        self.world.time_passes(passed_ms)
        decide_delete_idle_queues(self.shard, self.now)

    @rule(session=sessions, grace_ms=st.sampled_from([0, 15_000]))
    def lose_stream(self, session, grace_ms):
        holder = self.shard.clocks.holders.get(session)
        if holder is not None and holder.disconnected_ms is None:
            self.shard.clocks.disconnect(self.now, holder, grace_ms=grace_ms)

    @rule(queue=queues, what=st.sampled_from(["retry", "stale", "delete"]), again=st.booleans())
    def change_what_a_deleted_queue_left(self, queue, what, again):
        """Somebody looked at ended jobs just before their queue was deleted."""
        if queue not in self.shard.queues:
            return
        self.world.commit()
        self.world.write_buffer()
        kept = [one for one in self.world.kept().values() if one[1].queue == queue]
        decide_delete_queue(self.shard, self.now, queue, force=True)
        if again:
            self.push_payloads(queue, OPTIONS[0], Payloads.of([b"0", b"11"]), 0, None, b"")
        for state, record in kept[:3]:
            self._change_one(state, record, what)

    # Storage.

    @rule()
    def commit(self):
        self.world.commit()

    @rule()
    def write_buffer(self):
        self.world.write_buffer()

    @rule(budget=st.integers(1, 5))
    def stage(self, budget):
        self.world.stage(budget)

    @rule(how=st.sampled_from(["finished", "finished", "truncated", "abandoned"]))
    def end_checkpoint(self, how):
        if how == "abandoned":
            self.world.abandon_checkpoint()
        else:
            self.world.finish_checkpoint(truncate=how == "truncated")

    @rule(
        ops_kept=st.integers(0, 5),
        at=st.sampled_from(["anywhere", "before the commit", "after the commit"]),
    )
    def crash(self, ops_kept, at):
        if at == "before the commit":
            self.world.cut()
        elif at == "after the commit":
            self.world.commit()
        self.once.crash(self.shard.committed)
        before = self.world.image
        self.world.crash(ops_kept=ops_kept)
        assert self._counting(image_of(self.shard)) == self._counting(before)
        assert self.world.kept() == dict(sorted(self.world.ended.items()))
        assert not self.world.reports

    def _counting(self, image: dict[str, Any]) -> dict[str, Any]:
        return counting_at(image, self.shard.age.at(self.now))

    @invariant()
    def invariants_hold(self):
        invariants.check(self.shard)

    def teardown(self) -> None:
        """Whatever happened, it is there after the last restart, and time frees what waits."""
        self.crash(0, "after the commit")
        self.check_webhooks()
        self.time_passes(DAY_MS)
        self.invariants_hold()
        self.check_messages()
        self.check_dependencies()
        for queue in self.shard.queues.values():
            assert queue.counts[JobState.ACTIVE] == 0, "a lease was never looked at again"
        self.time_passes(DAY_MS)
        for queue in self.shard.queues.values():
            assert queue.counts[JobState.SCHEDULED] == 0, "a delayed job was never looked at again"


RecoveryMachine.TestCase.settings = settings(
    max_examples=EXAMPLES or 200,
    stateful_step_count=50,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRecovery = RecoveryMachine.TestCase
