"""Upkeep: what the runtime does by itself, on time.

One task looks at the timers of all shards and at the clocks; it is the only caller of `tick`, and
reads the clocks' beat before, so that time the process stood still ends no lease. What else goes
on in the background stands in the room of that name, a beat a file.
"""

from __future__ import annotations

import asyncio

from jobline_server.engine.decide.timers import next_deadline, tick
from jobline_server.runtime.clock import BEAT_MS
from jobline_server.runtime.core import Core


class Upkeep:
    """Runs the timers."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def run(self) -> None:
        """Looks at the timers when something is due, and every beat, until cancelled."""
        core = self._core
        more = False
        while True:
            wait_ms = 0 if more else self._until_next()
            core.next_look_ms = core.now().wall_ms + wait_ms
            core.timers.clear()
            try:
                async with asyncio.timeout(wait_ms / 1_000):
                    await core.timers.wait()
            except TimeoutError:
                core.loop_lag_ms = max(core.clock.beat(wait_ms), core.loop_lag_ms * 0.99)
            else:
                core.clock.beat(wait_ms)
            more = self.look()

    def look(self) -> bool:
        """Does what is due on every shard, and says whether more is due at once."""
        core = self._core
        more = False
        for shard in core.shards:
            if shard.delayed or shard.keys.records or shard.wheel.next_deadline() is not None:
                more |= tick(shard, core.now())
                core.decided(shard)
        return more

    def _until_next(self) -> int:
        now = self._core.now()
        waits = (next_deadline(shard, now) for shard in self._core.shards)
        return min([BEAT_MS, *(wait for wait in waits if wait is not None)])
