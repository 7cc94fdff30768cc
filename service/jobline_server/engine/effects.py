"""Effects: the consequences of facts outside their shard, in order.

Endings go to the ended store, to waiters and to watchers; `Revoked` asks a worker to stop;
`QueueWoken` has the dispatcher try a queue; `KeyHandedOver` is for watchers; `JobsNoted` and
`RunsNoted` are for the history. Effects follow from facts alone, so recovery yields them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.endings import Ending
from jobline_server.engine.entries import Fact
from jobline_server.engine.holder import Holder
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.queue import Queue
from jobline_server.engine.snapshots import JobsNoted, RunsNoted
from jobline_server.engine.values import RevokeReason


class Revoked(NamedTuple):
    """A holder should stop working on a job."""

    holder: Holder
    job_id: int
    delivery: int
    reason: RevokeReason


class QueueWoken(NamedTuple):
    """A queue may have jobs to dispatch."""

    queue: Queue


class KeyHandedOver(NamedTuple):
    """A job waits no longer behind the holder of its unique key."""

    unblocked: JobsUnblocked


Effect = Ending | Revoked | QueueWoken | KeyHandedOver | JobsNoted | RunsNoted

NO_ENDINGS = frozenset({Revoked, QueueWoken, KeyHandedOver, JobsNoted, RunsNoted})


class Applied(NamedTuple):
    """A fact that was applied, and its effects. `offset` is that of its journal row, 0 for a
    volatile fact, and for a notice, which stands between facts and has no effects.
    """

    fact: Fact | DuplicatesFound
    offset: int
    effects: list[Effect]


def endings_of(effects: Iterable[Effect]) -> Iterator[Ending]:
    """Yields the endings among effects."""
    for effect in effects:
        if type(effect) not in NO_ENDINGS:
            yield effect  # type: ignore[misc]  # what is none of them is an ending
