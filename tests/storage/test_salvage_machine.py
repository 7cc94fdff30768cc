"""Whatever was asked before, and whichever item of a checkpoint rots: the shard starts, keeps its
promises about what is left, and starts again from the checkpoint after that.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from jobline_server.engine import invariants, limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.push import decide_push
from jobline_server.storage.kinds import lots
from jobline_server.storage.store import ItemKind
from tests.examples import EXAMPLES
from tests.shard_image import image_of
from tests.storage.recovery_commands import CommandRules
from tests.storage.recovery_world import SHARD
from tests.storage.webhook_rules import PENDING_MAX, WebhookRules

pytestmark = pytest.mark.timeout(0 if EXAMPLES else 900)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lots of a few jobs count as large, and few deliveries of webhooks as too many."""
    monkeypatch.setattr(lots, "APART_BYTES_MIN", 20)
    monkeypatch.setattr(limits, "WEBHOOK_PENDING_MAX", PENDING_MAX)


class SalvageMachine(CommandRules, WebhookRules):
    """One shard on a disk that rots."""

    @rule(passed_ms=st.sampled_from([100, 6_000, 40_000]))
    def time_passes(self, passed_ms):
        self.world.time_passes(passed_ms)

    @rule(truncate=st.booleans())
    def take_checkpoint(self, truncate):
        self.world.finish_checkpoint(truncate=truncate)

    @rule(kind=st.sampled_from([ItemKind.LOT, ItemKind.JOB, *ItemKind]), at=st.integers(0, 5))
    def rot(self, kind, at):
        self.world.commit()
        keys = self.world.store.item_keys(SHARD, kind)
        if not keys:
            return
        self.world.store.rotten = {(kind, keys[at % len(keys)])}
        self.world.crash(ops_kept=0)
        invariants.check(self.shard)
        self.world.store.rotten.clear()
        self.world.store.forget(SHARD, kind, keys[at % len(keys)])
        self.world.finish_checkpoint(truncate=True)
        before = image_of(self.shard)
        self.world.crash(ops_kept=0)
        assert image_of(self.shard) == before

    def _push(self, push):
        """What rotted may have been a key, so ids are looked at elsewhere."""
        try:
            decide_push(self.shard, self.now, push)
        except Refused:
            return

    def _check_leased(self, leased):
        """What rotted may have been a job that was handed out, so counters are looked at
        elsewhere.
        """


SalvageMachine.TestCase.settings = settings(
    max_examples=EXAMPLES or 150,
    stateful_step_count=40,
    derandomize=not EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestSalvage = SalvageMachine.TestCase
