"""The ended buffer: jobs that ended, until they are written to the ended store.

Endings of committed batches are kept as they are, which costs next to nothing. When they are taken,
consecutive jobs of a lot that ended alike become one row, even if they were acked one by one and in
any order. Jobs that are not to be kept are left out, and of completed jobs all but the newest of
each queue, up to the number that it keeps. Those are returned beside the rows, so that a fact can
delete them; they cost the store nothing.

Changes to ended jobs (stale, deleted, retried, queue deleted) keep their order among the endings:
no row combines endings before and after a change. No change concerns a job that was left out: a
caller that changes an ended job has found it in the store. For the same reason changes may also be
taken before the endings that came earlier (`changes`).

After a crash the journal has the endings again. They go through a buffer as before: an operation
says what an id is from then on, so it does no harm if the store has some already. Jobs that are
left out then need no fact, because the counts are read from the store afterwards.

Nothing is lost with the buffer: the journal has it all until a checkpoint, and before that the
caller takes everything, writes it and makes it durable.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from jobline_server.engine import limits
from jobline_server.engine.endings import (
    EndedChange,
    Ending,
    JobsEnded,
    OperationNoted,
    QueueGone,
    RunsEnded,
)
from jobline_server.engine.queue import Queue
from jobline_server.engine.tables import IdTable
from jobline_server.engine.values import JobState
from jobline_server.engine.wanted import Wanted
from jobline_server.storage.completed import Completed
from jobline_server.storage.ended_rows import operations
from jobline_server.storage.ended_store import EndedOp, PutEnded, PutOperation

# A slice takes 1 ms, 3 ms if each row is a job of its own with a history; the caller looks at the
# time after each. A row costs one item of its budget, and one more per this many bytes.
BUDGET_ITEMS = 100
BYTES_AN_ITEM = 4_096
# Endings that are looked up at once. A look-up passes by those that were taken since the table was
# made, so they are some.
DRAINED_AT_ONCE = 1_000
# The most endings that wait because the first of them could not be taken. With more the process
# stops, as after a failed write: the journal has them all, and a start takes them from there.
LINE_MAX = 100_000

# No bound on the jobs whose endings are taken at once.
ALL = sys.maxsize

_COMPLETED = JobState.COMPLETED
# What is no end of a job.
_PASSED_ON = (EndedChange, QueueGone, OperationNoted)
_WITH_BLOB = (PutEnded, PutOperation)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Jobs that ended in this state and are not written, as runs (first id, count)."""

    queue: str
    state: JobState
    runs: list[tuple[int, int]]


Taken = tuple[list[EndedOp], list[Trimmed]]


class EndedBuffer:
    """The endings of all shards that are not in the ended store yet."""

    __slots__ = (
        "_changes",
        "_completed",
        "_completed_max",
        "_line",
        "_next",
        "_pending",
        "_wanted",
        "leaves_out",
    )

    def __init__(
        self, completed_max: int = limits.COMPLETED_KEPT_MAX, wanted: Wanted | None = None
    ) -> None:
        self._completed_max = completed_max
        self._wanted = Wanted() if wanted is None else wanted
        self._line: deque[Ending] = deque()
        # By number, in order: one that is left out goes at once, wherever it stands.
        self._pending: IdTable[Ending] = IdTable()
        self._next = 0
        # The numbers of changes of single jobs.
        self._changes: list[int] = []
        self._completed: dict[str, Completed] = {}
        self.leaves_out = False
        """Whether completed jobs were left out since the last `slices`."""

    def add(self, endings: Iterable[Ending], jobs_max: int = ALL) -> bool:
        """Adds the endings of a committed batch; batches of one shard come in order. Endings of
        `jobs_max` jobs are taken, and of those that one of them has more: a commit may have ended
        tens of thousands. Returns whether others wait, for the next call.

        If it raises, none is lost: the ending that failed and those behind it wait, and are tried
        first the next time.
        """
        line = self._line
        line.extend(endings)
        while line and jobs_max > 0:
            jobs_max -= self._take(line[0])
            line.popleft()
        return bool(line)

    def is_line_too_long(self) -> bool:
        """Returns whether more endings wait to be added than memory is for."""
        return len(self._line) > LINE_MAX

    def _take(self, ending: Ending) -> int:
        """Takes an ending; returns how many jobs it is of, at least 1."""
        number, jobs = self._next, 1
        if isinstance(ending, _PASSED_ON):
            self._pending[number] = ending
            if isinstance(ending, EndedChange):
                self._changes.append(number)
        elif ending.kept:
            jobs = sum(ending.counts) if isinstance(ending, RunsEnded) else len(ending.jobs)
            self._pending[number] = ending
            if ending.state is _COMPLETED and not (self._wanted and self._is_wanted(ending)):
                self._trim(number, ending, jobs)
        self._next = number + 1
        return jobs

    def _is_wanted(self, ending: RunsEnded | JobsEnded) -> bool:
        """Returns whether live jobs may read the results: then all are written."""
        if isinstance(ending, JobsEnded):
            return any(job.id in self._wanted for job in ending.jobs)
        return self._wanted.has_any(zip(ending.starts, ending.counts, strict=True))

    def take(self) -> Taken:
        """Returns everything as operations in order, and the jobs that were left out."""
        ops: list[EndedOp] = []
        trimmed: list[Trimmed] = []
        for more_ops, more_trimmed in self.slices():
            ops += more_ops
            trimmed += more_trimmed
        return ops, trimmed

    def slices(self, budget_items: int = BUDGET_ITEMS) -> Iterator[Taken]:
        """Yields what `take` returns in bounded pieces, for callers that must not block. What is
        added meanwhile is not among it.
        """
        pending, self._pending = self._pending, IdTable()
        self._changes = []
        completed, self._completed = self._completed, {}
        self.leaves_out = False
        for trim in _trimmed(completed):
            yield [], [trim]
        ops = operations(_drain(pending))
        while piece := _piece_of(ops, budget_items):
            yield piece, []

    def changes(self, budget_items: int = BUDGET_ITEMS) -> Iterator[Taken]:
        """Yields the changes alone in such pieces: to a caller that reads the store to change more
        of what it has, and need not see what has just ended. That waits for `slices`, as jobs are
        left out that complete until then. Each job that is changed must be in the store.
        """
        pending, numbers = self._pending, self._changes
        self._changes = []
        ops = operations(pending.pop(number) for number in numbers)
        while piece := _piece_of(ops, budget_items):
            yield piece, []

    def _trim(self, number: int, ending: RunsEnded | JobsEnded, count: int) -> None:
        """Leaves out the oldest completed jobs of a queue that keeps no more."""
        queue = _queue_of(ending)
        completed = self._completed.get(queue.name)
        if completed is None:
            completed = self._completed[queue.name] = Completed()
        limit = max(self._completed_max, queue.settings.retention.count or 0)
        for oldest in completed.add(number, count, limit):
            completed.leave_out(self._pending.pop(oldest))
            self.leaves_out = True


def _queue_of(ending: RunsEnded | JobsEnded) -> Queue:
    return ending.lot.queue if isinstance(ending, RunsEnded) else ending.jobs[0].queue


def _trimmed(completed: dict[str, Completed]) -> Iterator[Trimmed]:
    """Yields what was left out of each queue, and frees what is known of it."""
    while completed:
        queue, of_queue = completed.popitem()
        for runs in of_queue.left_out_runs():
            yield Trimmed(queue, _COMPLETED, runs)


def _drain(pending: IdTable[Ending]) -> Iterator[Ending]:
    """Yields endings in order, and frees each before the next: to free a million at once, with
    their jobs, takes some tenths of a second.
    """
    while numbers := list(islice(pending, DRAINED_AT_ONCE)):
        for number in numbers:
            yield pending.pop(number)


def _piece_of(ops: Iterator[EndedOp], budget_items: int) -> list[EndedOp]:
    """Returns operations until the budget is spent."""
    piece: list[EndedOp] = []
    spent = 0
    for op in ops:
        piece.append(op)
        spent += 1 + (len(op.row.blob) // BYTES_AN_ITEM if isinstance(op, _WITH_BLOB) else 0)
        if spent >= budget_items:
            break
    return piece
