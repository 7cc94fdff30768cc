"""Ageing: how READY jobs rise in priority while they wait, so that low priorities do not starve.

A job that has waited `after_ms` counts as `step` higher, one that has waited twice as long as twice
that, and so on. Jobs of one priority keep their order, so only the first of each is compared, at
the moment of a hand-out (`decide/by_age`): nothing is written, no timer runs, and it costs as much
as there are priorities, however many jobs wait. A job's own priority never changes.

A job waits from when it became READY. One that comes back from a worker to its old place (a lost
lease, a release) goes on with the age it had. Time is that of the wall clock, as for `run_at`: it
goes on while the server is down.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ageing:
    """A rise by `step` for each `after_ms` of waiting, by up to `limit` (None: any) in all."""

    after_ms: int
    step: int = 1
    limit: int | None = None

    def rise(self, waited_ms: int) -> int:
        """Returns by how much a job that has waited this long is above its priority."""
        rise = max(waited_ms, 0) // self.after_ms * self.step
        return rise if self.limit is None else min(rise, self.limit)
