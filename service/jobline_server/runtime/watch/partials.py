"""Partials: pieces of results that workers send while they work, for callers that wait.

They are in memory alone: the last ones of each job, and of all jobs together, where those of the
job that was silent for the longest time go first. The pieces of one delivery have consecutive
numbers; a reader sees by a gap what it missed, and by another delivery that the job began anew. A
reader keeps its place in the pieces of a job, and no pieces of its own: a slow one costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, NotDone
from jobline_server.engine.effects import Applied
from jobline_server.engine.endings import JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.entries import JobsDeleted
from jobline_server.engine.values import KEPT_STATES, SettleOutcome
from jobline_server.runtime.commits.batches import CommittedBatch

NUMBER_BITS = 20
# Bytes that a reader takes at a time: those that wait for its connection to be written.
READ_BYTES = 256 << 10


class Piece(NamedTuple):
    """One piece of a job's result."""

    job_id: int
    delivery: int
    number: int
    data: bytes


class _Pieces:
    """The pieces of one job that are kept: the last ones of one delivery, with consecutive numbers
    up to `last`.
    """

    __slots__ = ("bytes", "delivery", "is_over", "last", "pieces")

    def __init__(self, delivery: int, last: int) -> None:
        self.delivery = delivery
        self.pieces: deque[bytes] = deque()
        self.bytes = 0
        self.last = last
        # Whether the job has ended; kept for those who read it.
        self.is_over = False

    def add(self, data: bytes) -> int:
        """Adds a piece; returns by how much the size grew."""
        before = self.bytes
        self.pieces.append(data)
        self.bytes += size_of(data)
        self.last += 1
        while self.bytes > limits.PARTIALS_JOB_BYTES_MAX:
            self.drop_first()
        return self.bytes - before

    def drop_first(self) -> int:
        """Drops the oldest piece; returns its size."""
        size = size_of(self.pieces.popleft())
        self.bytes -= size
        return size

    def after(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yields the pieces after a number, with theirs."""
        first = self.last - len(self.pieces) + 1
        for wanted in range(max(number + 1, first), self.last + 1):
            yield wanted, self.pieces[wanted - self.last - 1]


class Partials:
    """The pieces of all jobs. Numbers begin above those of earlier lives of the server: the worker
    of a job may outlive it, and goes on under the same delivery.
    """

    def __init__(self, life: int) -> None:
        self.bytes = 0
        self._before_first = life << NUMBER_BITS
        # All jobs that sent a piece and live; and those with pieces, the longest silent one first.
        self._jobs: dict[int, _Pieces] = {}
        self._kept: OrderedDict[int, None] = OrderedDict()
        self._readers: dict[int, set[PartialReader]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def take(self, items: Sequence[ExtendItem], not_done: NotDone) -> None:
        """Takes the pieces of extends whose leases are held."""
        lost = {index for index, outcome in not_done if outcome is not SettleOutcome.CANCELLED}
        for index, item in enumerate(items):
            if item.partial and index not in lost:
                self.add(item.id, item.delivery, item.partial)

    def add(self, job_id: int, delivery: int, data: bytes) -> None:
        """Adds a piece of a job; the first one of a delivery takes the place of all before."""
        job = self._jobs.get(job_id)
        if job is None or job.delivery != delivery:
            self.bytes -= 0 if job is None else job.bytes
            job = self._jobs[job_id] = _Pieces(delivery, self._before_first)
        self._kept[job_id] = None
        self._kept.move_to_end(job_id)
        self.bytes += job.add(data)
        while self.bytes > limits.PARTIALS_BYTES_MAX:
            self._drop_oldest()
        for reader in self._readers.get(job_id, ()):
            reader.note(job_id)

    def _drop_oldest(self) -> None:
        job_id = next(iter(self._kept))
        job = self._jobs[job_id]
        self.bytes -= job.drop_first()
        if not job.pieces:
            del self._kept[job_id]

    def find(self, job_id: int) -> _Pieces | None:
        """Returns the pieces of a job; None if there are none."""
        return self._jobs.get(job_id)

    # Readers.

    def read(self, ids: Iterable[int], arrived: Callable[[], None]) -> PartialReader:
        """Returns a reader of the pieces of jobs, from the oldest that is kept. Close it."""
        reader = PartialReader(self, ids, arrived)
        for job_id in reader.ids:
            self._readers.setdefault(job_id, set()).add(reader)
        return reader

    def leave(self, reader: PartialReader) -> None:
        """Removes a reader, and what was kept for it alone."""
        for job_id in reader.ids:
            readers = self._readers.get(job_id, set())
            readers.discard(reader)
            if readers:
                continue
            self._readers.pop(job_id, None)
            job = self._jobs.get(job_id)
            if job is not None and job.is_over:
                self._forget(job_id)

    # Endings.

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Drops the pieces of jobs that ended or were deleted, once nobody reads them."""
        if not self._jobs:
            return
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, JobsEnded):
                    self._end(job.id for job in ending.jobs)
                elif isinstance(ending, RunsEnded):
                    self._end_runs(zip(ending.starts, ending.counts, strict=True))
                elif isinstance(ending, QueueGone):
                    self._end_runs(ending.live)
            self._end_deleted(batch.applied)

    def _end_deleted(self, applied: Iterable[Applied]) -> None:
        for fact, _, _ in applied:
            if isinstance(fact, JobsDeleted) and fact.state not in KEPT_STATES:
                self._end_runs(zip(fact.starts, fact.counts, strict=True))

    def _end_runs(self, runs: Iterable[tuple[int, int]]) -> None:
        for first_id, count in runs:
            end = first_id + count
            if count <= len(self._jobs):
                self._end(range(first_id, end))
            else:
                self._end([job_id for job_id in self._jobs if first_id <= job_id < end])

    def _end(self, ids: Iterable[int]) -> None:
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is None:
                continue
            if job_id in self._readers:
                job.is_over = True
            else:
                self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        self.bytes -= self._jobs.pop(job_id).bytes
        self._kept.pop(job_id, None)


class PartialReader:
    """One caller's places in the pieces of its jobs. `arrived` is called when there are more."""

    __slots__ = ("_arrived", "_news", "_partials", "_places", "ids")

    def __init__(self, partials: Partials, ids: Iterable[int], arrived: Callable[[], None]) -> None:
        self.ids = tuple(ids)
        self._partials = partials
        self._arrived = arrived
        # By job: the delivery and the number of the last piece taken.
        self._places: dict[int, tuple[int, int]] = {}
        self._news = dict.fromkeys(self.ids)

    def note(self, job_id: int) -> None:
        """Records that a job has a new piece."""
        self._news[job_id] = None
        self._arrived()

    def take(self) -> list[Piece]:
        """Returns the next pieces, at least one and about `READ_BYTES` of them; none if there are
        no more.
        """
        found: list[Piece] = []
        room = READ_BYTES
        while self._news and room > 0:
            job_id = next(iter(self._news))
            room = self._take_of(job_id, found, room)
            if room > 0:
                del self._news[job_id]
        return found

    def _take_of(self, job_id: int, found: list[Piece], room: int) -> int:
        job = self._partials.find(job_id)
        if job is None:
            return room
        delivery, number = self._places.get(job_id, (0, 0))
        if delivery != job.delivery:
            number = 0
        for wanted, data in job.after(number):
            if room <= 0:
                break
            found.append(Piece(job_id, job.delivery, wanted, data))
            self._places[job_id] = job.delivery, wanted
            room -= size_of(data)
        return room

    def close(self) -> None:
        """Ends the reading. May be called twice."""
        self._partials.leave(self)


def size_of(data: bytes) -> int:
    """Returns what a piece counts for: its bytes, and what it takes in memory besides."""
    return len(data) + limits.PARTIAL_EXTRA_BYTES
