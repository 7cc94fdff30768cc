"""Rules of the random histories in which groups use up their rates, which takes several steps."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from jobline_server.engine.group_settings import GroupSettings
from tests.unit.engine.group_rules import GROUP, GroupRules
from tests.unit.engine.histories import GROUP_RATE, QUEUE
from tests.unit.engine.lease_rules import LeaseRules

RATED = GroupSettings(rate=GROUP_RATE, concurrency=3)


class GroupRateRules(GroupRules, LeaseRules):
    """Groups have more jobs than tokens."""

    @rule(
        queue=QUEUE, group=GROUP, most=st.sampled_from([1, 20]), wait_ms=st.sampled_from([0, 2_000])
    )
    def use_up_a_rate(self, queue, group, most, wait_ms):
        """Jobs of two groups that have a rate, in turns, and some are leased."""
        for name in ("g1", "g2"):
            self.operate_on_a_group(queue, name, RATED, "settings")
        self.push_grouped(queue, [(name, 0, 0) for name in (group, "g1", "g2", "g1", "g2")], None)
        self._lease(queue, "", most, 1_000, None, 0, 0)
        self.both.wait(wait_ms)
        self.both.compare()
        self._lease(queue, "", 20, 1_000, None, 0, 0)
