"""The filter of a watcher: applied to runs of events, before single events are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobline_server.wire.event_runs import EventRun


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """Conditions on events; an empty one accepts all."""

    queues: frozenset[str] = frozenset()
    job_id: int = 0
    kinds: frozenset[int] = frozenset()

    def wanted_runs(self, run: EventRun) -> Iterator[tuple[int, int]]:
        """Yields the accepted events of a run, as (first index, count)."""
        shared = run.shared
        if self.queues and shared.queue not in self.queues:
            return
        if self.kinds and shared.kind not in self.kinds:
            return
        if not self.job_id:
            yield 0, run.total
            return
        for index in run.places_of(self.job_id):
            yield index, 1
