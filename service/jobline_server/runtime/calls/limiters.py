"""Operators' calls on limiters."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
    existing_limiter,
)
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.operations import LimitsChange, TimeLimitChange
from jobline_server.engine.rates import RateLimit
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.queries.paging import first_names
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit, LimiterView

# Names that a step of a list looks at.
STEP_NAMES = 4_000


class LimiterCalls:
    """Reads and changes limiters. A limiter is in the shard of a queue that has its name."""

    def __init__(self, core: Core, operations: Operations) -> None:
        self._core = core
        self._operations = operations

    def get_limiter(self, name: str) -> LimiterView:
        """Returns one limiter. Raises `Refused` with LIMITER_NOT_FOUND."""
        return self._view(existing_limiter(self._core.slots.of_queue(name).shard, name))

    async def list_limiters(
        self, *, page_size: int, page_token: str, prefix: str
    ) -> tuple[list[LimiterView], str]:
        """Returns a page of limiters by name; the token is the last name of the page before."""
        names = await first_names(self._names(page_token, prefix), page_size + 1)
        views: list[LimiterView] = []
        for name in names[:page_size]:
            slot = self._core.slots.find_by_queue(name)
            found = None if slot is None else slot.shard.own_limiters.get(name)
            if found is not None:
                views.append(self._view(found))
        return views, names[page_size - 1] if len(names) > page_size else ""

    def _names(self, after: str, prefix: str) -> Iterator[list[str]]:
        """Yields names of limiters after one, in slices."""
        for slot in self._core.slots:
            names = list(slot.shard.own_limiters)
            for at in range(0, len(names), STEP_NAMES):
                part = names[at : at + STEP_NAMES]
                yield [name for name in part if name > after and name.startswith(prefix)]

    async def put_limiter(
        self,
        name: str,
        rate: RateLimit | None,
        concurrency: int | None,
        audit: Audit = NO_AUDIT,
    ) -> LimiterView:
        """Creates a limiter, or changes its limits."""
        slot = self._core.slots.of_queue(name)
        limiters = slot.shard.own_limiters
        before = limiters.get(name)
        decide_put_limiter(slot.shard, self._core.now(), name, rate, concurrency)
        change = LimitsChange(before, limiters.get(name))
        self._operations.record(slot, audit, Target(limiter=name), change)
        return await self._changed(slot, name)

    async def empty_limiter(self, name: str, until_ms: int, audit: Audit) -> LimiterView:
        """Has a limiter let nothing out until a time; one that has passed lifts that limit."""
        slot = self._core.slots.of_queue(name)
        limiters = slot.shard.own_limiters
        before = existing_limiter(slot.shard, name).limited
        decide_empty_limiter(
            slot.shard, self._core.now(), name, until_ms, audit.principal, audit.reason
        )
        change = TimeLimitChange(before, limiters[name].limited)
        self._operations.record(slot, audit, Target(limiter=name), change)
        return await self._changed(slot, name)

    async def delete_limiter(self, name: str, audit: Audit = NO_AUDIT) -> None:
        """Deletes a limiter."""
        slot = self._core.slots.of_queue(name)
        before = slot.shard.own_limiters.get(name)
        decide_delete_limiter(slot.shard, self._core.now(), name)
        self._operations.record(slot, audit, Target(limiter=name), LimitsChange(before, None))
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)

    async def _changed(self, slot: ShardSlot, name: str) -> LimiterView:
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return self.get_limiter(name)

    def _view(self, settings: LimiterSettings) -> LimiterView:
        now, limited = self._core.now(), settings.limited
        limiter = self._core.load.limiters.find(settings.name)
        bucket = None if limiter is None else limiter.allowance.bucket
        return LimiterView(
            settings,
            active=0 if limiter is None else limiter.active,
            tokens=None if bucket is None else bucket.tokens(now.mono_ms),
            limited=limited if limited is not None and limited.until_ms > now.wall_ms else None,
        )
