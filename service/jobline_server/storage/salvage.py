"""Salvage: splits facts into pieces that can be applied or left out one by one.

If an item was set apart, the journal has facts of jobs that are missing. Then every fact is applied
one run at a time, and a run that does not fit is reported and left out; the other runs of the fact
are applied. `apply` checks before it changes anything, so a run that it refuses leaves no partial
change. The function that splits a fact is in its row of `codec`.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.entries import Fact, JobsRetried
from jobline_server.storage.codec.batch import FACTS


def pieces_of(fact: Fact) -> Iterator[Fact]:
    """Yields the fact as facts about one run or one job each, in an order that means the same."""
    return FACTS[type(fact)].pieces(fact)


def queues_of(fact: Fact) -> set[str]:
    """Returns the queues that must exist for a fact."""
    if isinstance(fact, JobsRetried):
        return {job.queue for job in fact.jobs}
    queue = getattr(fact, "queue", "")
    return {queue} if queue and not getattr(fact, "created_number", 0) else set()
