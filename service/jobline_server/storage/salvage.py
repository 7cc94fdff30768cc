"""Salvage: facts in pieces so small that each stands or falls alone.

Where an item was set apart, the journal goes on telling of jobs that are not there. Every fact is
then applied a run at a time, and a run that does not fit is reported and left out; what stands
beside it in the same fact goes on. `apply` looks before it changes anything, so a run that it
refuses leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jobline_server.engine.entries import (
    CancelRequested,
    Fact,
    JobsCancelled,
    JobsCompleted,
    JobsDeleted,
    JobsLeased,
    JobsReady,
    JobsReleased,
    JobsRetried,
    JobsStalled,
)


def pieces_of(fact: Fact) -> Iterator[Fact]:
    """The fact as facts about one run or one job each, in an order that means the same."""
    return _PIECES.get(type(fact), _whole)(fact)


def queues_of(fact: Fact) -> set[str]:
    """The queues that a fact takes to be there."""
    if isinstance(fact, JobsRetried):
        return {job.queue for job in fact.jobs}
    queue = getattr(fact, "queue", "")
    return {queue} if queue and not getattr(fact, "created_number", 0) else set()


def _whole(fact: Fact) -> Iterator[Fact]:
    yield fact


def _leased(fact: JobsLeased) -> Iterator[Fact]:
    runs = zip(fact.starts, fact.counts, fact.deliveries, strict=True)
    for start, count, delivery in runs:
        yield replace(fact, starts=[start], counts=[count], deliveries=[delivery])


def _settled(fact: JobsCompleted | JobsCancelled) -> Iterator[Fact]:
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    for start, count in zip(fact.starts, fact.counts, strict=True):
        own = {start: results[start]} if start in results else {}
        yield replace(
            fact,
            starts=[start],
            counts=[count],
            result_ids=list(own),
            results=list(own.values()),
        )


def _deleted(fact: JobsDeleted) -> Iterator[Fact]:
    for start, count in zip(fact.starts, fact.counts, strict=True):
        yield replace(fact, starts=[start], counts=[count])


def _given_back(fact: JobsStalled | JobsReleased) -> Iterator[Fact]:
    for index, job_id in enumerate(fact.ids):
        run_at_ms = fact.run_at_ms[index : index + 1]
        yield replace(fact, ids=[job_id], run_at_ms=run_at_ms)


def _ready(fact: JobsReady) -> Iterator[Fact]:
    for first_id in fact.lots:
        yield replace(fact, ids=[], lots=[first_id])
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id], lots=[])


def _retried(fact: JobsRetried) -> Iterator[Fact]:
    for job, state in zip(fact.jobs, fact.states, strict=True):
        yield replace(fact, jobs=[job], states=[state])


def _asked(fact: CancelRequested) -> Iterator[Fact]:
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id])


# Each function takes the very fact that it is registered for, which no type of a table can say.
_PIECES: dict[type, Callable[[Any], Iterator[Fact]]] = {
    JobsLeased: _leased,
    JobsCompleted: _settled,
    JobsCancelled: _settled,
    JobsDeleted: _deleted,
    JobsStalled: _given_back,
    JobsReleased: _given_back,
    JobsReady: _ready,
    JobsRetried: _retried,
    CancelRequested: _asked,
}
