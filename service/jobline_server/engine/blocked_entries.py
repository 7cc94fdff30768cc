"""Facts of BLOCKED jobs, which wait for others, and of the jobs that they wait for. `entries` has
the list of all facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jobline_server.engine.dependencies import ParentEnd


@dataclass(slots=True)
class JobsUnblocked:
    """BLOCKED jobs of one queue wait for no other job any more: each is READY, at the tail of its
    lane, or SCHEDULED if its time has not come.
    """

    at_ms: int
    queue: str
    ids: list[int]
    # ----
    run_at_ms: list[int] = field(default_factory=list)  # 0 for READY ones; `apply` sets it


@dataclass(slots=True)
class JobSetAside:
    """The worker of an ACTIVE job ended its lease: the job is BLOCKED until children are done that
    `ChildrenAdded` names, in the same commit.
    """

    at_ms: int
    queue: str
    id: int
    worker: str


@dataclass(slots=True)
class ChildrenAdded:
    """A BLOCKED job got more children; it waits for those in `parents_left`, until
    `blocked_until_ms` (0: without limit). `on_failure`: its policies about them, as in `Ties`.
    """

    at_ms: int
    id: int
    children: list[int]
    parents_left: list[int]
    blocked_until_ms: int
    on_failure: bytes = b""


@dataclass(slots=True)
class JobsAwaited:
    """Another shard asked to be told of the ends of jobs of this one, live or not."""

    at_ms: int
    by_shard: int
    ids: list[int]


@dataclass(slots=True)
class JobsNotAwaited:
    """Another shard waits for jobs of this one no more."""

    at_ms: int
    by_shard: int
    ids: list[int]


@dataclass(slots=True)
class ParentsEnded:
    """Jobs that others depend on are over; of another shard, or found to have ended before."""

    at_ms: int
    ids: list[int]
    ends: list[ParentEnd]


@dataclass(slots=True)
class ParentsMet:
    """BLOCKED jobs wait for one of their parents no more: job `ids[i]` for `parents[i]`. Those that
    wait for no other are unblocked by a fact of its own.
    """

    at_ms: int
    ids: list[int]
    parents: list[int]


@dataclass(slots=True)
class ParentsDropped:
    """BLOCKED jobs wait for none of their parents any more: one failed, and they continue without
    the others. Those that do not wait for a unique key are unblocked by a fact of its own.
    """

    at_ms: int
    ids: list[int]


@dataclass(slots=True)
class DependenciesFailed:
    """BLOCKED jobs ended because of what became of `parent`: DEAD, or CANCELLED if `cancelled`. The
    parent is 0 where none ended in time.
    """

    at_ms: int
    parent: int
    end: ParentEnd
    cancelled: bool
    ids: list[int]


@dataclass(slots=True)
class DependentsTold:
    """All that waited for these jobs have been told of their ends."""

    at_ms: int
    ids: list[int]


BlockedFact = (
    JobsUnblocked
    | ParentsMet
    | ParentsDropped
    | ParentsEnded
    | DependenciesFailed
    | DependentsTold
    | JobSetAside
    | ChildrenAdded
    | JobsAwaited
    | JobsNotAwaited
)
