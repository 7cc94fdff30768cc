"""Totals since the start: how jobs ended, and leases that came to nothing.

What the engine counts for each queue anyway is not counted again here. Jobs that end together are
one step, however many they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.entries import JobDied, JobsDeleted, JobsReleased, JobsStalled
from jobline_server.engine.values import EndReason, JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.ended.evictions import Evictions

ENDED_STATES = (JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED)
LOST_REASONS = (EndReason.STALLED, EndReason.WORKER_LOST)
"""Why a lease was lost: its worker was silent for too long, or its stream broke."""
COUNTED = frozenset({JobsStalled, JobsReleased, JobsDeleted, JobDied})


class Totals:
    """Counts of all queues together. `evictions` are told of those in the same walk over facts."""

    def __init__(self, evictions: Evictions) -> None:
        self._evictions = evictions
        self.ended = dict.fromkeys(ENDED_STATES, 0)
        self.leases_lost = dict.fromkeys(LOST_REASONS, 0)
        self.released = 0

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Counts what committed batches did."""
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, JobsEnded):
                    self.ended[ending.state] += len(ending.jobs)
                elif isinstance(ending, RunsEnded):
                    self.ended[ending.state] += sum(ending.counts)
            for fact, _, _ in batch.applied:
                # One look-up for pushes, leases and acks, which are nearly all facts.
                if type(fact) in COUNTED:
                    self._count(fact)

    def _count(self, fact: object) -> None:
        if isinstance(fact, JobsStalled):
            self.leases_lost[fact.reason] += len(fact.ids)
        elif isinstance(fact, JobsReleased):
            self.released += len(fact.ids)
        elif isinstance(fact, JobsDeleted) and fact.evicted:
            self._evictions.add(fact)
        elif isinstance(fact, JobDied) and fact.reason in LOST_REASONS:
            self.leases_lost[fact.reason] += 1
