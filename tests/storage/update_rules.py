"""Changes of waiting jobs, as a rule of the recovery machine."""

from __future__ import annotations

from contextlib import suppress

from hypothesis.stateful import rule

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.update import decide_update
from tests.storage.recovery_commands import CommandRules
from tests.storage.recovery_values import changes, picks


class UpdateRules(CommandRules):
    """Operators who change jobs."""

    @rule(picked=picks, change=changes)
    def update(self, picked, change):
        """One job that waits is changed, if any of these does."""
        for job_id in self._live(picked)[:1]:
            with suppress(Refused):
                decide_update(self.shard, self.now, job_id, change)
