"""Salvage: facts in pieces so small that each stands or falls alone.

Where an item was set apart, the journal goes on telling of jobs that are not there. Every fact is
then applied a run at a time, and a run that does not fit is reported and left out; what stands
beside it in the same fact goes on. `apply` looks before it changes anything, so a run that it
refuses leaves nothing half done. The function that cuts a fact stands in its row of `codec`.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.entries import Fact, JobsRetried
from jobline_server.storage.codec.batch import FACTS


def pieces_of(fact: Fact) -> Iterator[Fact]:
    """Yields the fact as facts about one run or one job each, in an order that means the same."""
    return FACTS[type(fact)].pieces(fact)


def queues_of(fact: Fact) -> set[str]:
    """Returns the queues that a fact takes to be there."""
    if isinstance(fact, JobsRetried):
        return {job.queue for job in fact.jobs}
    queue = getattr(fact, "queue", "")
    return {queue} if queue and not getattr(fact, "created_number", 0) else set()
