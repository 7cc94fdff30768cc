"""Watches that jobs with `delivery` ONCE are handed out once, whatever crashes (G7)."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.commands import FailItem, FailResult, Leased, NotDone, ReleaseItem
from jobline_server.engine.rules import DeliveryMode
from jobline_server.engine.values import SettleOutcome
from tests.unit.engine.world import leases_of


class OnceWatch:
    """Jobs that have run and may not run again: the offset of their lease, by id."""

    def __init__(self) -> None:
        self._ran: dict[int, int] = {}

    def leased(self, leased: Leased, offset: int) -> None:
        """A worker gets these after the commit of their lease."""
        once = DeliveryMode.ONCE
        items = [one for one in leased.items() if one.options.rules.delivery_mode is once]
        for job_id, _ in leases_of(Leased.of(items)):
            assert job_id not in self._ran, "it was handed out before"
            self._ran[job_id] = offset

    def failed(self, items: Sequence[FailItem], results: Sequence[FailResult]) -> None:
        """Their workers say how it went."""
        for item, result in zip(items, results, strict=True):
            if result.outcome is SettleOutcome.DONE:
                self.may_run(item.id)

    def released(self, items: Sequence[ReleaseItem], not_done: NotDone) -> None:
        """Their workers say that they did not run."""
        left = {index for index, _ in not_done}
        for index, item in enumerate(items):
            if index not in left:
                self.may_run(item.id)

    def may_run(self, job_id: int) -> None:
        """Somebody who knows says that it may run again."""
        self._ran.pop(job_id, None)

    def crash(self, committed: int) -> None:
        """What waits for its commit is never delivered."""
        self._ran = {i: offset for i, offset in self._ran.items() if offset <= committed}
