"""Which events a watcher wants: decided on runs of events, before any event is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobline_server.wire.event_runs import EventRun


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """Which events; an empty condition lets all through."""

    queues: frozenset[str] = frozenset()
    job_id: int = 0
    kinds: frozenset[int] = frozenset()

    def wanted_runs(self, run: EventRun) -> Iterator[tuple[int, int]]:
        """The events of a run that are wanted, as (how many come before, how many they are)."""
        shared = run.shared
        if self.queues and shared.queue not in self.queues:
            return
        if self.kinds and shared.kind not in self.kinds:
            return
        if not self.job_id:
            yield 0, run.total
            return
        for origin in run.places_of(self.job_id):
            yield origin, 1
