"""The interface of the finished file: jobs that ended, kept to be looked at and put back by hand.

Jobs that ended alike are kept as a *run*: `count` consecutive ids in one row with one blob. Ids
leave a run when they are put back or deleted, and part of a run may become stale before the rest;
so what a run still holds is one or more *parts*, and no id is ever in two. Blobs are not split and
not read here: job `id` of a part is number `id - part.row.first_id` in the blob of its row.

Writes are not durable before `sync`. After a crash the caller writes everything since the last
`sync` again, in the same order, whether or not it had arrived; so an operation says what an id is
from now on, and the last one on an id counts: done twice is done once.

Nothing here knows the engine's rules: states and reasons are numbers, and who may be deleted when
is the caller's to decide. No clock is read; moments are wall time in milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jobline_server.engine.values import JobState

# A page, and a look at many jobs, holds blobs up to this much, one row at least.
READ_BATCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class EndedRow:
    """Jobs `first_id … first_id + count - 1`, which ended alike, as they were written.

    While they are stale, `state` is STALE, `former_state` what it was, and `stale_ms` since when; a
    row that is put has neither. `error_type` and `error_message` are there to look for. `due_ms` is
    when an age of their own makes them stale, and `keep_count` how many newer ones they are kept
    beside by a count of their own; None leaves it to their queue.
    """

    first_id: int
    count: int
    queue: str
    name: str
    state: int
    ended_ms: int
    reason: int
    error_type: str
    error_message: str
    blob: bytes
    former_state: int = 0
    stale_ms: int = 0
    due_ms: int | None = None
    keep_count: int | None = None


@dataclass(frozen=True, slots=True)
class PutEnded:
    """These ids ended. Whatever was kept of any of them is forgotten."""

    row: EndedRow


@dataclass(frozen=True, slots=True)
class MarkStale:
    """What is kept of these ids is stale from now on; ids that already are stay as they are."""

    first_id: int
    count: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class RemoveEnded:
    """Nothing is kept of these ids: deleted, or put back."""

    first_id: int
    count: int


@dataclass(frozen=True, slots=True)
class RemoveQueue:
    """Nothing is kept of this queue."""

    queue: str


EndedOp = PutEnded | MarkStale | RemoveEnded | RemoveQueue


@dataclass(frozen=True, slots=True)
class EndedPart:
    """Ids `first_id … first_id + count - 1` of a row."""

    first_id: int
    count: int
    row: EndedRow


@dataclass(frozen=True, slots=True)
class EndedSpan:
    """Ids of one queue and state, without what they hold."""

    queue: str
    state: int
    first_id: int
    count: int

    def ids(self) -> range:
        """The ids, one by one."""
        return range(self.first_id, self.first_id + self.count)


@dataclass(frozen=True, slots=True)
class OwnCount:
    """A number of newer jobs that some jobs of a queue and state say is enough."""

    queue: str
    state: int
    count: int


@dataclass(frozen=True, slots=True)
class EndedQuery:
    """Which ids above `after_id`; every condition that is set must hold. `ended_after_ms` is
    included, `ended_before_ms` is not. `limit` counts jobs."""

    queue: str = ""
    states: frozenset[int] = frozenset()
    reasons: frozenset[int] = frozenset()
    name: str | None = None
    error_type: str = ""
    error_contains: str = ""
    ended_after_ms: int | None = None
    ended_before_ms: int | None = None
    after_id: int = -1
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class EndedPage:
    """Parts in order of id, none twice; the last one may be cut to the limit.

    `bad` are ids whose row has a bad checksum: kept, counted, not readable. `resume_after` is the
    `after_id` of the next page, None after the last. A page may be short, or empty, and still have
    a next one: a call looks at a bounded number of rows.
    """

    parts: list[EndedPart]
    bad: list[tuple[int, int]]
    resume_after: int | None


@dataclass(frozen=True, slots=True)
class EndedLookup:
    """Of the first `looked` jobs that were asked for: the rows of those that are kept, by id, and
    `bad`, those whose row has a bad checksum.
    """

    rows: dict[int, EndedRow]
    bad: list[int]
    looked: int


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead jobs that have queue, name, reason and type of error in common."""

    queue: str
    name: str
    reason: int
    error_type: str
    count: int
    oldest_ms: int
    newest_ms: int


class EndedJobStore(Protocol):
    """The finished file. Reads see all writes that have returned."""

    async def open(self) -> None:
        """Makes or opens the file. Raises `StoreRefused`."""

    async def write(self, ops: Sequence[EndedOp]) -> None:
        """Applies operations in order, without making them durable.

        In slices, so that a read never waits for all of a long list: a failure may leave a first
        part of it applied, and it is written again as a whole. Raises `DiskFull`, or
        `CommitUnknown`.
        """

    async def sync(self) -> None:
        """Makes everything durable that was written so far."""

    async def get(self, job_id: int) -> EndedRow | None:
        """The row that holds a job, None if none does. Raises `DataLoss` if its checksum is bad."""

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        """The rows that hold these jobs, which may come in any order and more than once; ids in
        order are found fastest. A call looks at a bounded number of rows, and at one id at least:
        ask again for those behind `looked`.
        """

    async def list(self, query: EndedQuery) -> EndedPage:
        """A page of ended jobs by id."""

    async def counts(self) -> dict[tuple[str, int], int]:
        """How many jobs are kept, by queue and state."""

    async def dead_statistics(self, queue: str = "") -> Sequence[DeadGroup]:
        """What the dead jobs of one queue, or of all, have in common; most first."""

    async def due_for_stale(
        self, queue: str, state: JobState, ended_before_ms: int, keep_newest: int, limit: int
    ) -> Sequence[EndedSpan]:
        """Jobs without an age of their own that ended before a moment, oldest first, without the
        newest `keep_newest` such jobs of the queue.

        At most `limit` parts; a part is not cut, so a few more than `keep_newest` may stay.
        """

    async def oldest_ms(self, queue: str, state: JobState) -> int | None:
        """When the oldest job of a queue and state ended that has no age of its own."""

    async def due_by_own_age(self, now_ms: int, limit: int) -> Sequence[EndedSpan]:
        """Jobs of all queues whose own age is over now, longest first, at most `limit` parts."""

    async def due_for_deletion(self, stale_before_ms: int, limit: int) -> Sequence[EndedSpan]:
        """Jobs that became stale before a moment, oldest first, at most `limit` parts."""

    async def evictable(
        self, queue: str, state: JobState, keep_count: int, keep_bytes: int, limit: int
    ) -> Sequence[EndedSpan]:
        """The oldest jobs of a queue beyond a number or a size of blobs, whatever they say
        themselves, at most `limit` parts.

        A part is not cut: at least `keep_count` jobs stay, unless their blobs alone exceed
        `keep_bytes`.
        """

    async def next_own_count(self, before: OwnCount | None) -> OwnCount | None:
        """The last count of jobs' own before another (None: of all), by queue, state and count;
        None before the first.

        The largest count of a queue and state comes first, because what is deleted for it is never
        among the newer ones that a smaller count asks for.
        """

    async def beyond_own_count(self, own: OwnCount, limit: int) -> Sequence[EndedSpan]:
        """Jobs with a count of their own, oldest first, at most `limit` parts: those that at least
        so many kept jobs of their queue and state ended after, ties by id.

        A part is not cut: it ended with the last of its jobs.
        """

    async def close(self) -> None:
        """Makes everything durable and closes the file; may be called twice, or without `open`."""
