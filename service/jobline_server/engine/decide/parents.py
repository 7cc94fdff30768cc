"""Parents: what the jobs that new jobs depend on mean for them, when they are pushed.

A parent that completed counts as done, one that is live is waited for, and one that ended in any
other way leads to what the new job's policy says, at once. A parent must have an id before its
child has one, so no job depends on itself, and there are no cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobline_server.engine import effective, limits
from jobline_server.engine.blocked_entries import DependenciesFailed
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.awaiting import await_elsewhere
from jobline_server.engine.decide.held_keys import PushDeviations
from jobline_server.engine.decide.outcomes import Outcomes, states_of
from jobline_server.engine.dependencies import END_OF_STATE, ParentEnd
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.push_fields import depends_on_field
from jobline_server.engine.rules import DependencyPolicy
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import STORED_OUTCOMES, JobState, Now
from jobline_server.engine.view import ShardView

RETRY_AFTER_MS = 1_000

_COMPLETED = JobState.COMPLETED
_CANCEL, _IGNORE, _WAIT = DependencyPolicy.CANCEL, DependencyPolicy.IGNORE, DependencyPolicy.WAIT
_CONTINUE = DependencyPolicy.CONTINUE

_Failure = tuple[int, ParentEnd, bool]
"""A parent that makes jobs end, how it ended, and whether they are CANCELLED."""


@dataclass(slots=True)
class Parents:
    """The parents of new jobs: their states before the push, and by index of the push the ids of
    jobs that are not new. `failed` are the new jobs whose parents have failed, once they are
    stored.
    """

    states: Mapping[int, JobState | None]
    known: Mapping[int, int]
    failed: dict[_Failure, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Blocking:
    """What becomes of new jobs: columns of `JobsPushed`, the jobs whose parents have failed, and
    the parents that other shards have.
    """

    ties: list[Ties] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    parents_left: list[tuple[int, ...]] = field(default_factory=list)
    blocked_until_ms: list[int] = field(default_factory=list)
    failed: dict[_Failure, list[int]] = field(default_factory=dict)
    awaited: dict[int, None] = field(default_factory=dict)

    def block(self, at: int, parents_left: tuple[int, ...], until_ms: int) -> None:
        """Makes a job BLOCKED that waits for these parents, or for its unique key."""
        self.blocked.append(at)
        self.parents_left.append(parents_left)
        self.blocked_until_ms.append(until_ms)
        self.awaited |= dict.fromkeys(parents_left)


def has_parents(rows: JobColumns) -> bool:
    """Returns whether any of these jobs depends on others."""
    return any(rows.parent_indexes) or any(ties.parents for ties in rows.ties)


def parents_of(
    shard: ShardView,
    command: Push,
    rows: JobColumns,
    exceptions: PushDeviations,
    outcomes: Outcomes,
) -> Parents:
    """Returns what is known of the parents of new jobs, the `rows`, before anything is emitted. Of
    a push that is checked, `outcomes` has all of them that are over.

    Raises `OutcomesNeeded`, or `Refused` with JOB_NOT_FOUND or DEPENDENCIES_FULL.
    """
    if command.is_checked:
        return Parents(outcomes, {})
    others = [one for one in exceptions if one[1] not in STORED_OUTCOMES]
    known = {index: job_id for index, _, job_id in others}
    refused = {index for index, outcome, _ in others if isinstance(outcome, RefusalKind)}
    ids: dict[int, None] = {}
    next_id, left = shard.next_id(), 0
    for ties, indexes in _ties_and_indexes(rows):
        ids |= dict.fromkeys(ties.parents)
        left += len(ties.parents) + len(indexes)
        for index in indexes:
            if index in refused:
                raise _not_stored(command, index)
            # One that is known by the key of another job of this push is new, too.
            if known.get(index, next_id) < next_id:
                ids[known[index]] = None
    states = states_of(shard, list(ids), outcomes)
    for job_id, state in states.items():
        if state is None:
            raise _no_parent(command, job_id, known)
    _check_room(shard, states, left)
    return Parents(states, known)


def _ties_and_indexes(rows: JobColumns) -> Iterator[tuple[Ties, tuple[int, ...]]]:
    count = len(rows)
    return zip(rows.ties or [NO_TIES] * count, rows.parent_indexes or [()] * count, strict=True)


def _not_stored(command: Push, parent: int) -> Refused:
    child = next(at for at, own in enumerate(command.rows.parent_indexes) if parent in own)
    why = f"job {parent} of this push is not stored"
    return _not_found(why, f"jobs[{child}].depends_on_indexes")


def _no_parent(command: Push, job_id: int, known: Mapping[int, int]) -> Refused:
    why, rows = f"there is no job {job_id}", command.rows
    for child, ties in enumerate(rows.ties):
        if job_id in ties.parents:
            return _not_found(why, depends_on_field(command, child))
    # No job names it: it is known by the key of a job of this push on which another depends.
    child = next(at for at, own in enumerate(rows.parent_indexes) if job_id in map(known.get, own))
    return _not_found(why, f"jobs[{child}].depends_on_indexes")


def _not_found(why: str, field: str) -> Refused:
    message = f"{why}, on which a job of this push depends"
    return Refused(RefusalKind.JOB_NOT_FOUND, message, field=field)


def _check_room(shard: ShardView, states: Mapping[int, JobState | None], left: int) -> None:
    load = shard.load
    if load.dependencies + left > load.dependencies_max:
        raise _full(f"the server keeps {load.dependencies} of {load.dependencies_max} dependencies")
    records, _ = shard.dependencies.awaited.find_many([*states])
    for job_id, record in zip(states, records, strict=True):
        if record is not None and len(record.children) + left > limits.DEPENDENTS_MAX:
            raise _full(f"{len(record.children)} jobs wait for job {job_id}")


def _full(why: str) -> Refused:
    return Refused(RefusalKind.DEPENDENCIES_FULL, why, retry_after_ms=RETRY_AFTER_MS)


def _blocking_of(
    shard: ShardView, fact: JobsPushed, rows: JobColumns, parents: Parents
) -> Blocking:
    """Returns what becomes of new jobs."""
    settings, first_id = shard.queues[fact.queue].settings, fact.first_id
    ids = _ids_by_index(rows, parents.known, first_id)
    made = Blocking()
    over = {job_id: state for job_id, state in parents.states.items() if state in END_OF_STATE}
    # Jobs of one push often depend on the same ones as their neighbour, under the same policy.
    before: tuple[tuple[int, ...], bytes, DependencyPolicy] | None = None
    left: tuple[int, ...] = ()
    failed: _Failure | None = None
    for at, (ties, indexes) in enumerate(_ties_and_indexes(rows)):
        named = tuple(dict.fromkeys([*ties.parents, *(ids[index] for index in indexes)]))
        made.ties.append(ties if named == ties.parents else ties.of_parents(named))
        if not named:
            if ties.claim.parked:
                made.block(at, (), 0)
            continue
        options = rows.options[at]
        policy = effective.on_dependency_failure(options, settings)
        if before != (named, ties.on_failure, policy):
            before = named, ties.on_failure, policy
            left, failed = sort_out(over, made.ties[-1], policy)
        if failed is not None:
            made.failed.setdefault(failed, []).append(first_id + at)
        elif not (left or ties.claim.parked):
            continue
        timeout_ms = effective.block_timeout_ms(options, settings) if left else 0
        made.block(at, left, fact.at_ms + timeout_ms if timeout_ms else 0)
    return made


def _ids_by_index(rows: JobColumns, known: Mapping[int, int], first_id: int) -> list[int]:
    """Returns the ids of the first jobs of a push in order: new ones, and those known before."""
    ids: list[int] = []
    new = 0
    while rows.parent_indexes and new < len(rows):
        if len(ids) in known:
            ids.append(known[len(ids)])
        else:
            ids.append(first_id + new)
            new += 1
    return ids


def sort_out(
    over: Mapping[int, JobState | None], ties: Ties, of_job: DependencyPolicy
) -> tuple[tuple[int, ...], _Failure | None]:
    """Returns the parents that a job waits for, and the first one that makes it end, if any.
    `over` are the states of those that ended.
    """
    if over.keys().isdisjoint(ties.parents):
        return ties.parents, None
    left: list[int] = []
    for at, parent in enumerate(ties.parents):
        state = over.get(parent)
        if state is None:
            left.append(parent)
        elif state is not _COMPLETED:
            policy = ties.policy_at(at) or of_job
            if policy is _WAIT:
                left.append(parent)
            elif policy is _CONTINUE:
                return (), None
            elif policy is not _IGNORE:
                return (), (parent, END_OF_STATE[state], policy is _CANCEL)
    return tuple(left), None


def emit_jobs(
    shard: ShardView, now: Now, fact: JobsPushed, rows: JobColumns, parents: Parents | None
) -> None:
    """Emits the push of jobs, BLOCKED as their parents want. Call `end_failed` after it."""
    if parents is None:
        shard.emit(fact, volatile=fact.volatile)
    else:
        _emit_blocked(shard, now, fact, rows, parents)


def _emit_blocked(
    shard: ShardView, now: Now, fact: JobsPushed, rows: JobColumns, parents: Parents
) -> None:
    blocking = _blocking_of(shard, fact, rows, parents)
    shard.emit(
        replace(
            fact,
            ties=blocking.ties,
            blocked=blocking.blocked,
            parents_left=blocking.parents_left,
            blocked_until_ms=blocking.blocked_until_ms,
        )
    )
    parents.failed = blocking.failed
    await_elsewhere(shard, now, blocking.awaited)


def end_failed(shard: ShardView, now: Now, parents: Parents) -> None:
    """Ends the new jobs whose parents had failed; a job of the same push may have taken the place
    of one of them.
    """
    for (parent, end, cancelled), ids in parents.failed.items():
        live = [job_id for job_id in ids if shard.jobs.find(job_id) is not None]
        if live:
            shard.emit(DependenciesFailed(now.wall_ms, parent, end, cancelled, live))
