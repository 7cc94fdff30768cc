"""The timers of all shards.

One loop runs what is due; it is the only caller of `tick`. All shards of one iteration get the same
time. Standstills of the process do not count (`clock`), so workers are heard before their leases
expire. Other periodic work is in `background`, one file per task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain

from jobline_server.engine import limits
from jobline_server.engine.decide.timers import next_deadline, open_gates, tick
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.schedule_timer import ScheduleTimer
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.waiting import is_set_by_tick

# The timers are looked at this often, even if nothing is due.
TIMER_CHECK_MS = 250
# … and this often while no shard has anything that may become due: a decision ends the rest.
REST_MS = 1_000
# Facts of a shard that may wait for the next commit before its timers add more. On a slow disk, a
# chain of jobs that fail one after the other would become one commit of hundreds of thousands.
WAITING_FACTS_MAX = 2_000
# How soon the timers look again whether they were written.
BEHIND_MS = 10


class TimerLoop:
    """Runs the timers."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._schedules = ScheduleTimer(core)
        self._more = False
        self._behind = False
        self._may_rest = False
        self.running = asyncio.Lock()
        """Held while slices are run; a clock that is moved by hand is moved between two of them."""

    async def step(self) -> bool:
        """Waits until something is due, and runs a slice of it. The loop is free between two
        shards.
        """
        wait_ms = 0 if self._more else self._until_next()
        if self._behind:
            wait_ms = max(wait_ms, BEHIND_MS)
        if await self._is_woken_within(wait_ms) and wait_ms > TIMER_CHECK_MS:
            # Plain pushes make nothing due: each of them would have all shards looked at.
            await self._is_woken_within(min(self._until_next(), TIMER_CHECK_MS))
        async with self.running:
            for _ in self._slices():
                await asyncio.sleep(0)
        return True

    async def _is_woken_within(self, wait_ms: int) -> bool:
        """Waits until the next look, or until a decision wants an earlier one; returns whether one
        did.
        """
        core = self._core
        now = core.clock.now()
        core.next_tick = Now(now.wall_ms + wait_ms, now.mono_ms + wait_ms)
        core.timers.clear()
        core.timers_rest = wait_ms > TIMER_CHECK_MS
        # A rest alone is long enough to end at a tick: what is due is never late by it.
        is_woken = await is_set_by_tick(core.timers, wait_ms / 1_000)
        core.timers_rest = False
        return is_woken

    def run_due(self) -> bool:
        """Runs a slice of what is due on every shard; returns whether more is due."""
        for _ in self._slices():
            pass
        return self._more

    def _slices(self) -> Iterator[None]:
        """Runs a slice per shard, and yields between them. Raises the first failure at the end: the
        timers of other shards go on.
        """
        core = self._core
        now = core.clock.now()
        failures: list[Exception] = []
        self._more = self._behind = False
        self._may_rest = True
        for slot in core.slots:
            shard = slot.shard
            if slot.is_closed:
                # Since the iteration of the loop before.
                continue
            has_schedules = bool(shard.schedules.by_name)
            if next_deadline(shard, now) is None and not (shard.holds_keys() or has_schedules):
                continue
            self._may_rest = False
            try:
                for queue in open_gates(shard, now):
                    slot.woken[queue] = None
                if shard.recorded() > WAITING_FACTS_MAX:
                    self._behind = True
                else:
                    self._more |= tick(shard, now)
                    if has_schedules:
                        self._more |= self._schedules.run_due(slot, now)
            except Exception as error:  # noqa: BLE001  # raised when all shards had their turn
                failures.append(error)
            core.after_decision(slot)
            yield
        self._open_limiters()
        if failures:
            raise ExceptionGroup("timers failed", failures)

    def _open_limiters(self) -> None:
        """Dispatches the queues of which limiters let jobs out again."""
        core = self._core
        if not core.load.limiters:
            return
        slots: dict[ShardSlot, None] = {}
        for queue in core.load.limiters.open_due(core.clock.now(), limits.SLICE_ITEMS):
            slot = core.slots.find_by_queue(queue.name)
            if slot is not None and slot.shard.queues.get(queue.name) is queue:
                slot.woken[queue] = slots[slot] = None
        for slot in slots:
            core.serve(slot)

    def next_due(self) -> int | None:
        """Returns in how many milliseconds anything is due that does more than free memory, 0 if
        it is now; None if nothing is.
        """
        return min(self._waits(with_sweeps=False), default=None)

    def _until_next(self) -> int:
        """Returns the milliseconds until the next look."""
        known = self._waits(with_sweeps=True)
        if self._may_rest and not known:
            return REST_MS
        return min([TIMER_CHECK_MS, *known])

    def _waits(self, *, with_sweeps: bool) -> list[int]:
        """Returns in how many milliseconds something is due, of each shard and kind that knows."""
        now = self._core.clock.now()
        waits = (
            next_deadline(slot.shard, now, with_sweeps=with_sweeps) for slot in self._core.slots
        )
        runs = (
            self._schedules.wait_ms(slot, now)
            for slot in self._core.slots
            if slot.shard.schedules.by_name
        )
        opens_ms = self._core.load.limiters.first_ms()
        opens = () if opens_ms is None else (max(opens_ms - now.mono_ms, 0),)
        return [wait for wait in chain(waits, runs, opens) if wait is not None]
