"""Effects: what facts cause outside their shard, in the order in which it happened.

The ended store keeps endings, waiters and watchers are notified of them; workers are told to stop
(`Revoked`); queues may have something to dispatch (`QueueWoken`). Effects follow from facts alone,
so a recovered journal yields them again: recovery keeps the endings and drops the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobline_server.engine.endings import Ending
from jobline_server.engine.entries import Fact
from jobline_server.engine.holder import Holder
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import RevokeReason


class Revoked(NamedTuple):
    """A holder should stop working on a job."""

    holder: Holder
    job_id: int
    delivery: int
    reason: RevokeReason


class QueueWoken(NamedTuple):
    """A queue may have something to dispatch."""

    queue: Queue


Effect = Ending | Revoked | QueueWoken


class Applied(NamedTuple):
    """A fact that was applied, and its effects. `offset`: of the journal row that holds it; 0 for a
    fact of jobs that are never written.
    """

    fact: Fact
    offset: int
    effects: list[Effect]


def endings_of(effects: Iterable[Effect]) -> Iterator[Ending]:
    """Yields the endings among effects."""
    for effect in effects:
        kind = type(effect)
        if kind is not QueueWoken and kind is not Revoked:
            yield effect  # type: ignore[misc]  # what is neither is an ending
