"""Looks up what became of jobs that others wait for, where nobody tells it: after a start, when a
queue was deleted with its ended jobs, and when a shard answers that a job is not live there.

The engine lists them (`Dependencies.to_look_up`). After a failure they are looked up again, after a
pause that grows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.dependencies import decide_parents_ended
from jobline_server.engine.values import JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.outcomes import OutcomeLookup
from jobline_server.runtime.loops import pause_after
from jobline_server.runtime.slots import ShardSlot


class ParentLookup:
    """The look-ups that are under way, one per shard."""

    def __init__(self, core: Core, outcomes: OutcomeLookup) -> None:
        self._core = core
        self._outcomes = outcomes
        self._record = core.loops.record("parents")
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stopped = False
        core.look_up_parents = self._serve

    def start(self) -> None:
        """Looks up what was not known when the process ended."""
        for slot in self._core.slots:
            self._serve(slot)

    async def stop(self) -> None:
        """Ends all look-ups; the next start looks up the same jobs."""
        self._stopped = True
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def under_way(self) -> list[asyncio.Task[None]]:
        """Returns the tasks that look up now."""
        return [*self._tasks.values()]

    def _serve(self, slot: ShardSlot) -> None:
        """Has looked up what is unknown since the last decision, if anything is."""
        if not slot.shard.dependencies.to_look_up:
            return
        if slot.number not in self._tasks and not self._stopped:
            task = asyncio.get_running_loop().create_task(self._look_up_all(slot))
            self._tasks[slot.number] = task

    async def _look_up_all(self, slot: ShardSlot) -> None:
        failures = 0
        dependencies = slot.shard.dependencies
        try:
            while not slot.is_closed:
                ids = dependencies.due_look_ups(limits.SLICE_LOOK_UPS)
                if not ids:
                    return
                if await self._is_looked_up(slot, ids):
                    failures = 0
                    continue
                failures += 1
                await asyncio.sleep(pause_after(failures))
        finally:
            del self._tasks[slot.number]

    async def _is_looked_up(self, slot: ShardSlot, ids: Sequence[int]) -> bool:
        """Looks up jobs; returns whether what became of them is decided."""
        try:
            states = await self._states_of(ids)
            # In the same step as the last look.
            decide_parents_ended(slot.shard, self._core.now(), states)
            self._core.after_decision(slot)
        except Refused:
            # The shard of a parent is not here, or jobs change too fast.
            return False
        except Exception as error:  # noqa: BLE001  # the next try may do better
            self._record.failed(error)
            return False
        self._record.worked()
        return True

    async def _states_of(self, ids: Sequence[int]) -> dict[int, JobState | None]:
        """Returns the states of jobs. One that cannot be read counts as deleted: nobody will ever
        know that it completed.
        """
        try:
            return await self._outcomes.outcomes_of(ids)
        except Refused as refused:
            if refused.kind is not RefusalKind.DATA_LOSS:
                raise
        if len(ids) == 1:
            return {ids[0]: None}
        states: dict[int, JobState | None] = {}
        for job_id in ids:
            states |= await self._states_of([job_id])
        return states
