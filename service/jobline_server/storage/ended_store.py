"""The interface of the ended store: jobs that ended, kept to be shown and to be retried by hand.

Jobs that ended alike are written as one *row*: `count` consecutive ids with one blob. Ids leave a
row when their jobs are retried or deleted, and some may become stale before the others. What is
left of a row is one or more *parts*, and no id is in two parts. The store neither splits nor reads
blobs: job `id` of a part is number `id - part.row.first_id` in the blob of its row.

Its verbs are put, mark, remove (`EndedOp`) and scan: by id with contents (`list`), or by time
without (`scan`). It has no rules: states and reasons are numbers, and which jobs are due to be aged
or evicted is decided above it, in `runtime/ended/due.py`. It reads no clock; times are wall time in
milliseconds. What operators did is written through it too (`PutOperation`), and read by the
interface in `operations`.

Writes are durable after `sync`. After a crash the caller writes everything since the last `sync`
again, in the same order, whether or not it had arrived. An operation says what an id is from then
on, so to write it twice has the effect of writing it once.

`tests/storage/memory_ended_store.py` is a small one; the contracts beside it run on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from jobline_server.storage.blob_parts import BlobParts
from jobline_server.storage.operations import OperationRow

# The blobs of a page, or of a look-up of many jobs, are this large at most; one row always fits.
READ_BATCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class EndedRow:
    """Jobs `first_id … first_id + count - 1`, which ended alike, as they were written.

    While they are stale, `state` is STALE, `former_state` the state before, `stale_ms` the time of
    the change, and `delete_ms` when they go; a row that is put has none of these. `error_type` and
    `error_message` can be searched. `due_ms` is when an age of their own ends. By a count of their
    own they are kept until `keep_count` jobs have ended later, and stale for `delete_after_ms`.
    None leaves it to the settings of their queue. `retry_ms` is when a dead job is put back by
    itself, None if it is not; such a row has one job.
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
    retry_ms: int | None = None
    delete_after_ms: int | None = None
    delete_ms: int = 0


@dataclass(frozen=True, slots=True)
class PutEnded:
    """Writes a row. Whatever was kept of these ids before is removed."""

    row: EndedRow


@dataclass(frozen=True, slots=True)
class MarkStale:
    """Makes what is kept of these ids stale, to go at `delete_ms`, or after a time of their own;
    ids that are stale already stay as they are."""

    first_id: int
    count: int
    at_ms: int
    delete_ms: int


@dataclass(frozen=True, slots=True)
class RemoveEnded:
    """Removes these ids: their jobs were deleted, or retried."""

    first_id: int
    count: int


@dataclass(frozen=True, slots=True)
class RemoveQueue:
    """Removes all that is kept of a queue."""

    queue: str


@dataclass(frozen=True, slots=True)
class PutOperation:
    """Writes an operation of an operator; what was written of it before is replaced, unless it was
    over and this is its begin.
    """

    row: OperationRow


EndedOp = PutEnded | MarkStale | RemoveEnded | RemoveQueue | PutOperation


@dataclass(frozen=True, slots=True)
class EndedPart:
    """Ids `first_id … first_id + count - 1` of a row."""

    first_id: int
    count: int
    row: EndedRow


class EndedSpan(NamedTuple):
    """A part without its row. A scan adds `at_ms`, the time that it goes by, and `bytes`, the share
    of its row's blob."""

    queue: str
    state: int
    first_id: int
    count: int  # type: ignore[assignment]  # hides `tuple.count`, for which a part has no use
    at_ms: int = 0
    bytes: int = 0

    def ids(self) -> range:
        """Returns the ids."""
        return range(self.first_id, self.first_id + self.count)

    def key(self) -> ScanKey:
        """Returns its place in the order of the scan that found it."""
        return self.at_ms, self.first_id


ScanKey = tuple[int, int]
"""A place in the order of a scan: time in milliseconds, first id."""
BEFORE_ALL: ScanKey = (-1, -1)
AFTER_ALL: ScanKey = (1 << 62, 1 << 62)


class ScanOrder(Enum):
    """The time that a scan goes by, earliest first; parts of the same time go by id."""

    ENDED = 1
    """When they ended: the parts of one queue and state. A part ended with the last of its jobs."""
    DUE = 2
    """When an age of their own ends: the parts of all queues that have one and are not STALE."""
    STALE = 3
    """When they are deleted: the STALE parts of all queues."""
    RETRY = 4
    """When they are put back by themselves: the parts of one queue that are DEAD and have such a
    time."""


@dataclass(frozen=True, slots=True)
class EndedScan:
    """Up to `limit` parts with `after` < key ≤ `until`. The order RETRY needs `queue`. Only for the
    order ENDED: `queue` and `state`, which that order needs, and one of `by_queue_age` (only parts
    without an age of their own) and `keep_count` (only parts with this count of their own)."""

    order: ScanOrder
    queue: str = ""
    state: int = 0
    by_queue_age: bool = False
    keep_count: int | None = None
    after: ScanKey = BEFORE_ALL
    until: ScanKey = AFTER_ALL
    limit: int = 1_000


class EndedTotals(NamedTuple):
    """What is kept in one queue and state: jobs, bytes of their blobs, and those of the jobs that
    have no age of their own."""

    jobs: int
    bytes: int
    jobs_by_queue_age: int


@dataclass(frozen=True, slots=True)
class OwnCount:
    """A count of their own that some jobs of a queue and state have."""

    queue: str
    state: int
    count: int


@dataclass(frozen=True, slots=True)
class EndedQuery:
    """Selects up to `limit` jobs with ids above `after_id` for which every condition that is set
    holds, that of `blob_parts` for the blob of their row. `ended_after_ms` is included,
    `ended_before_ms` is not."""

    queue: str = ""
    states: frozenset[int] = frozenset()
    reasons: frozenset[int] = frozenset()
    name: str | None = None
    error_type: str = ""
    error_contains: str = ""
    ended_after_ms: int | None = None
    ended_before_ms: int | None = None
    blob_parts: BlobParts = ()
    after_id: int = -1
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class EndedPage:
    """Parts by id, none twice; the last one may be cut to the limit.

    `bad` are runs of ids whose row has a bad checksum: kept and counted, but not readable.
    `resume_after` is the `after_id` of the next page, None after the last. A page may be short, or
    empty, and still have a next one: a call reads a bounded number of rows.
    """

    parts: list[EndedPart]
    bad: list[tuple[int, int]]
    resume_after: int | None


@dataclass(frozen=True, slots=True)
class EndedLookup:
    """Of the first `looked` ids that were asked for: the rows of those that are kept, by id, and in
    `bad` those whose row has a bad checksum."""

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
    """A store of ended jobs. Reads see all writes that have returned."""

    async def open(self) -> None:
        """Opens the store, or makes it. Raises `StoreRefused`."""

    async def write(self, ops: Sequence[EndedOp]) -> None:
        """Applies operations in order, without making them durable.

        In slices, so that a read never waits for all of a long list. A failure may leave the first
        of them applied; the caller writes the list again as a whole. Raises `DiskFull`, or
        `CommitUnknown`.
        """

    async def growth(self, size_bytes: int) -> int:
        """Returns by how much so many bytes more make the file grow; 0 where all reuse room."""

    async def sync(self) -> None:
        """Makes everything durable that was written so far."""

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        """Returns the rows that hold these jobs, given in any order, also repeatedly; ids in order
        are found fastest. A call reads a bounded number of rows, and looks up one id at least: call
        it again for those behind `looked`."""

    async def list(self, query: EndedQuery) -> EndedPage:
        """Returns a page of ended jobs by id."""

    async def scan(self, scan: EndedScan) -> Sequence[EndedSpan]:
        """Returns parts in the order of a scan, at the cost of those: an index has the order."""

    async def count(self, scan: EndedScan) -> int:
        """Returns the number of jobs in the parts of a scan. Counts `limit` parts at most, so a
        result below `limit` is exact."""

    async def next_own_count(self, before: OwnCount | None) -> OwnCount | None:
        """Returns the last count of jobs' own before another (None: of all), by queue, state and
        count, among jobs that are not STALE; None if there is none.
        """

    async def totals(self, queue: str, state: int) -> EndedTotals:
        """Returns what is kept in a queue and state, without a scan."""

    async def counts(self) -> dict[tuple[str, int], int]:
        """Returns how many jobs are kept, by queue and state."""

    async def dead_statistics(self, queue: str = "") -> Sequence[DeadGroup]:
        """Returns the groups of dead jobs of one queue, or of all; the largest first."""

    async def close(self) -> None:
        """Makes everything durable and closes the store; may be called twice, or without `open`."""
