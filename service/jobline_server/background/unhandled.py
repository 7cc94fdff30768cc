"""Says in the log, and to the workers of a queue, which names of READY jobs none of them handles.

Such jobs wait for ever, mostly because a worker was not deployed, and nobody sees an error. Each
queue and name is said once, and again when it was handled meanwhile. Of a queue without workers
nothing is said: its jobs may well be for later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from jobline_server.background.periodic import Counts
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.telemetry.log import logger

LOG = logger("background")

EVERY_SECONDS = 5.0
# Queues looked at in a run, and lanes of each: some milliseconds at most. The next run goes on.
QUEUES_AT_ONCE = 500
LANES_AT_ONCE = 100
# Names that are said, of all queues, and remembered until they are handled: with more of them it is
# no single worker that was forgotten.
NAMES_MAX = 1_000


@dataclass(slots=True)
class UnhandledNames:
    """Looks at the queues that workers take from."""

    core: Core
    tell: Callable[[str, Mapping[str, int]], None]
    name: str = "unhandled_names"
    every_seconds: float = EVERY_SECONDS
    _said: dict[str, frozenset[str]] = field(default_factory=dict, init=False)
    _at: int = field(default=0, init=False)

    async def run_once(self, _now: Now) -> Counts:
        """Warns of what is new."""
        queues = self.core.rings.queues()
        start = self._at if self._at < len(queues) else 0
        part = queues[start : start + QUEUES_AT_ONCE]
        self._at = start + len(part)
        for name in [name for name in self._said if self._queue(name) is None]:
            del self._said[name]
        return {"warned": sum([self._look(name) for name in part])}

    def _queue(self, name: str) -> Queue | None:
        return self.core.shard_of_queue(name).queues.get(name)

    def _look(self, name: str) -> int:
        """Warns of a queue's names; returns how often."""
        queue, handled = self._queue(name), self.core.rings.names(name)
        if queue is None or handled is None:
            self._said.pop(name, None)
            return 0
        said = self._said.get(name, frozenset()) - handled
        new: dict[str, int] = {}
        for lane in islice(queue.lanes(), LANES_AT_ONCE):
            if lane.name not in handled and lane.name not in said:
                new[lane.name] = new.get(lane.name, 0) + lane.ready
        left = NAMES_MAX - sum(map(len, self._said.values()))
        told = dict(islice(new.items(), max(left, 0)))
        for job_name, ready in told.items():
            LOG.warning("no worker handles", queue=name, job_name=job_name, ready=ready)
        if told:
            self.tell(name, told)
        self._said[name] = said | told.keys()
        if not self._said[name]:
            del self._said[name]
        return len(told)
