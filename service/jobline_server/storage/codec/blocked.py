"""Facts of BLOCKED jobs and of those that they wait for, between value and message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from jobline.v1 import entry_pb2
from jobline_server.engine.blocked_entries import (
    ChildrenAdded,
    DependenciesFailed,
    DependentsTold,
    JobsAwaited,
    JobSetAside,
    JobsNotAwaited,
    JobsUnblocked,
    ParentsDropped,
    ParentsEnded,
    ParentsMet,
)
from jobline_server.engine.dependencies import ParentEnd
from jobline_server.engine.entries import Fact, JobsPushed
from jobline_server.storage.codec.table import FactRow, FactTable, whole


def fill_blocked(message: entry_pb2.JobsPushed, fact: JobsPushed) -> None:
    """Writes the columns of BLOCKED jobs of a push."""
    message.blocked.extend(fact.blocked)
    message.parents_left_counts.extend(map(len, fact.parents_left))
    message.parents_left.extend([one for left in fact.parents_left for one in left])
    message.blocked_until_ms.extend(fact.blocked_until_ms)


def parents_left_of(message: entry_pb2.JobsPushed) -> list[tuple[int, ...]]:
    """Reads the parents that BLOCKED jobs of a push wait for."""
    parents = iter(message.parents_left)
    return [tuple(islice(parents, count)) for count in message.parents_left_counts]


def fill_jobs_unblocked(entry: entry_pb2.Entry, fact: JobsUnblocked) -> None:
    """Writes it into an entry."""
    message = entry.jobs_unblocked
    message.queue = fact.queue
    message.ids.extend(fact.ids)


def jobs_unblocked(at_ms: int, message: entry_pb2.JobsUnblocked) -> JobsUnblocked:
    """Reads it."""
    return JobsUnblocked(at_ms=at_ms, queue=message.queue, ids=list(message.ids))


def fill_parents_met(entry: entry_pb2.Entry, fact: ParentsMet) -> None:
    """Writes it into an entry."""
    message = entry.parents_met
    message.ids.extend(fact.ids)
    message.parents.extend(fact.parents)


def parents_met(at_ms: int, message: entry_pb2.ParentsMet) -> ParentsMet:
    """Reads it."""
    return ParentsMet(at_ms=at_ms, ids=list(message.ids), parents=list(message.parents))


def fill_parents_dropped(entry: entry_pb2.Entry, fact: ParentsDropped) -> None:
    """Writes it into an entry."""
    entry.parents_dropped.ids.extend(fact.ids)


def parents_dropped(at_ms: int, message: entry_pb2.ParentsDropped) -> ParentsDropped:
    """Reads it."""
    return ParentsDropped(at_ms=at_ms, ids=list(message.ids))


def fill_parents_ended(entry: entry_pb2.Entry, fact: ParentsEnded) -> None:
    """Writes it into an entry."""
    message = entry.parents_ended
    message.ids.extend(fact.ids)
    message.ends.extend(fact.ends)


def parents_ended(at_ms: int, message: entry_pb2.ParentsEnded) -> ParentsEnded:
    """Reads it."""
    return ParentsEnded(at_ms=at_ms, ids=list(message.ids), ends=list(map(ParentEnd, message.ends)))


def fill_dependencies_failed(entry: entry_pb2.Entry, fact: DependenciesFailed) -> None:
    """Writes it into an entry."""
    message = entry.dependencies_failed
    message.parent = fact.parent
    message.end = fact.end
    message.cancelled = fact.cancelled
    message.ids.extend(fact.ids)


def dependencies_failed(at_ms: int, message: entry_pb2.DependenciesFailed) -> DependenciesFailed:
    """Reads it."""
    return DependenciesFailed(
        at_ms=at_ms,
        parent=message.parent,
        end=ParentEnd(message.end),
        cancelled=message.cancelled,
        ids=list(message.ids),
    )


def fill_dependents_told(entry: entry_pb2.Entry, fact: DependentsTold) -> None:
    """Writes it into an entry."""
    entry.dependents_told.ids.extend(fact.ids)


def dependents_told(at_ms: int, message: entry_pb2.DependentsTold) -> DependentsTold:
    """Reads it."""
    return DependentsTold(at_ms=at_ms, ids=list(message.ids))


def fill_jobs_awaited(entry: entry_pb2.Entry, fact: JobsAwaited) -> None:
    """Writes it into an entry."""
    message = entry.jobs_awaited
    message.by_shard = fact.by_shard
    message.ids.extend(fact.ids)


def jobs_awaited(at_ms: int, message: entry_pb2.JobsAwaited) -> JobsAwaited:
    """Reads it."""
    return JobsAwaited(at_ms=at_ms, by_shard=message.by_shard, ids=list(message.ids))


def fill_jobs_not_awaited(entry: entry_pb2.Entry, fact: JobsNotAwaited) -> None:
    """Writes it into an entry."""
    message = entry.jobs_not_awaited
    message.by_shard = fact.by_shard
    message.ids.extend(fact.ids)


def jobs_not_awaited(at_ms: int, message: entry_pb2.JobsAwaited) -> JobsNotAwaited:
    """Reads it."""
    return JobsNotAwaited(at_ms=at_ms, by_shard=message.by_shard, ids=list(message.ids))


def fill_job_set_aside(entry: entry_pb2.Entry, fact: JobSetAside) -> None:
    """Writes it into an entry."""
    message = entry.job_set_aside
    message.queue = fact.queue
    message.id = fact.id
    message.worker = fact.worker


def job_set_aside(at_ms: int, message: entry_pb2.JobSetAside) -> JobSetAside:
    """Reads it."""
    return JobSetAside(at_ms=at_ms, queue=message.queue, id=message.id, worker=message.worker)


def fill_children_added(entry: entry_pb2.Entry, fact: ChildrenAdded) -> None:
    """Writes it into an entry."""
    message = entry.children_added
    message.id = fact.id
    message.children.extend(fact.children)
    message.parents_left.extend(fact.parents_left)
    message.blocked_until_ms = fact.blocked_until_ms
    message.on_failure = fact.on_failure


def children_added(at_ms: int, message: entry_pb2.ChildrenAdded) -> ChildrenAdded:
    """Reads it."""
    return ChildrenAdded(
        at_ms=at_ms,
        id=message.id,
        children=list(message.children),
        parents_left=list(message.parents_left),
        blocked_until_ms=message.blocked_until_ms,
        on_failure=message.on_failure,
    )


_OfIds = (
    JobsUnblocked
    | ParentsDropped
    | DependenciesFailed
    | DependentsTold
    | JobsAwaited
    | JobsNotAwaited
)


def _one_by_one(fact: _OfIds) -> Iterator[Fact]:
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id])


def _met(fact: ParentsMet) -> Iterator[Fact]:
    for job_id, parent in zip(fact.ids, fact.parents, strict=True):
        yield replace(fact, ids=[job_id], parents=[parent])


def _ended(fact: ParentsEnded) -> Iterator[Fact]:
    for job_id, end in zip(fact.ids, fact.ends, strict=True):
        yield replace(fact, ids=[job_id], ends=[end])


FACTS: FactTable = {
    JobsUnblocked: FactRow("jobs_unblocked", fill_jobs_unblocked, jobs_unblocked, _one_by_one),
    ParentsMet: FactRow("parents_met", fill_parents_met, parents_met, _met),
    ParentsDropped: FactRow("parents_dropped", fill_parents_dropped, parents_dropped, _one_by_one),
    ParentsEnded: FactRow("parents_ended", fill_parents_ended, parents_ended, _ended),
    DependenciesFailed: FactRow(
        "dependencies_failed", fill_dependencies_failed, dependencies_failed, _one_by_one
    ),
    DependentsTold: FactRow("dependents_told", fill_dependents_told, dependents_told, _one_by_one),
    JobSetAside: FactRow("job_set_aside", fill_job_set_aside, job_set_aside, whole),
    ChildrenAdded: FactRow("children_added", fill_children_added, children_added, whole),
    JobsAwaited: FactRow("jobs_awaited", fill_jobs_awaited, jobs_awaited, _one_by_one),
    JobsNotAwaited: FactRow(
        "jobs_not_awaited", fill_jobs_not_awaited, jobs_not_awaited, _one_by_one
    ),
}
