"""Periodic task: warns of names of READY jobs that no connected worker of their queue handles.

Such jobs would wait for ever without an error, mostly because a worker was not deployed. The
warning goes to the log and to the workers of the queue, once for each queue and name, and again if
the name was handled in between. A queue without workers gets no warning: its jobs may well be for
later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from jobline_server.background.periodic import Counts
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.pace import Pace
from jobline_server.telemetry.log import logger

LOG = logger("background")

EVERY_SECONDS = 5.0
# Queues checked per run, and names of each that are warned of. The next run continues.
QUEUES_AT_ONCE = 500
NAMES_AT_ONCE = 100
# Names of a queue that are looked at between two looks at the time.
NAMES_LOOKED_AT = 1_000
# Names warned of and remembered until they are handled, all queues together. Beyond that, more than
# one missing worker is to blame.
NAMES_MAX = 1_000


@dataclass(slots=True)
class UnhandledNames:
    """Checks the queues that consumers wait at, in slices."""

    core: Core
    notify: Callable[[str, Mapping[str, int]], Awaitable[None]]
    name: str = "unhandled_names"
    every_seconds: float = EVERY_SECONDS
    _warned: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _at: int = field(default=0, init=False)

    async def run_once(self, _now: Now) -> Counts:
        """Checks the next queues; returns how many names were warned of."""
        queues = self.core.rings.queues()
        start = self._at if self._at < len(queues) else 0
        part = queues[start : start + QUEUES_AT_ONCE]
        self._at = start + len(part)
        for name in [name for name in self._warned if self._queue(name) is None]:
            del self._warned[name]
        pace, warned = Pace(), 0
        for name in part:
            new = await self._new_names(name, pace)
            for job_name, ready in new.items():
                LOG.warning("no worker handles", queue=name, job_name=job_name, ready=ready)
                await pace.rest()
            if new:
                await self.notify(name, new)
            warned += len(new)
            await pace.rest()
        return {"warned": warned}

    def _queue(self, name: str) -> Queue | None:
        return self.core.slots.find_queue(name)

    async def _new_names(self, name: str, pace: Pace) -> Mapping[str, int]:
        """Returns the names of a queue to warn of, with their jobs, and remembers them."""
        found = await self._unknown_names(name, pace)
        # While others went on the queue may have gone, and workers may have come.
        queue, handled = self._queue(name), self.core.rings.names(name)
        if queue is None or handled is None:
            self._warned.pop(name, None)
            return {}
        warned = self._warned.get(name, frozenset()) - handled
        left = NAMES_MAX - sum(map(len, self._warned.values()))
        new_names: dict[str, int] = {}
        for job_name in found[: max(left, 0)]:
            ready = queue.ready.of_names(frozenset({job_name}))
            if ready and job_name not in handled:
                new_names[job_name] = ready
        self._warned[name] = warned | new_names.keys()
        if not self._warned[name]:
            del self._warned[name]
        return new_names

    async def _unknown_names(self, name: str, pace: Pace) -> list[str]:
        """Returns names of READY jobs of a queue that nobody handles and nobody was warned of. All
        names may have to be looked at: those that are handled may come first.
        """
        queue, handled = self._queue(name), self.core.rings.names(name)
        if queue is None or handled is None:
            return []
        known = handled | self._warned.get(name, frozenset())
        found: list[str] = []
        names = list(queue.ready.named())
        for at in range(0, len(names), NAMES_LOOKED_AT):
            part = names[at : at + NAMES_LOOKED_AT]
            found += [job_name for job_name in part if job_name not in known]
            if len(found) >= NAMES_AT_ONCE:
                break
            await pace.rest()
        return found[:NAMES_AT_ONCE]
