"""The ended buffer: jobs that ended, until they are written to the ended store.

Endings of committed batches are kept as they are, which costs next to nothing. When they are taken,
consecutive jobs of a lot that ended alike become one row, even if they were acked one by one and in
any order. Jobs that are not to be kept are left out, and of completed jobs all but the newest of
each queue, up to the number that it keeps. Those are returned beside the rows, so that a fact can
delete them; they cost the store nothing.

Changes to ended jobs (stale, deleted, retried, queue deleted) keep their order among the endings:
no row combines endings before and after a change. No change concerns a job that was left out: a
caller that changes an ended job has found it in the store.

After a crash the journal has the endings again. They go through a buffer as before: an operation
says what an id is from then on, so it does no harm if the store has some already. Jobs that are
left out then need no fact, because the counts are read from the store afterwards.

Nothing is lost with the buffer: the journal has it all until a checkpoint, and before that the
caller takes everything, writes it and makes it durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
from jobline_server.engine.values import JobState
from jobline_server.engine.wanted import Wanted
from jobline_server.storage.ended_rows import operations
from jobline_server.storage.ended_store import EndedOp, PutEnded, PutOperation

# A slice takes 1 ms, 3 ms if each row is a job of its own with a history; the caller looks at the
# time after each. A row costs one item of its budget, and one more per this many bytes.
BUDGET_ITEMS = 100
BYTES_AN_ITEM = 4_096
# Endings that were left out are swept once there are this many, and half of the buffer are such.
SWEPT_MIN = 1_000
# The most endings that wait because the first of them could not be taken. With more the process
# stops, as after a failed write: the journal has them all, and a start takes them from there.
LINE_MAX = 100_000

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

    __slots__ = ("_completed", "_completed_max", "_left_out", "_line", "_pending", "_wanted")

    def __init__(
        self, completed_max: int = limits.COMPLETED_KEPT_MAX, wanted: Wanted | None = None
    ) -> None:
        self._completed_max = completed_max
        self._wanted = Wanted() if wanted is None else wanted
        self._line: deque[Ending] = deque()
        self._pending: list[Ending] = []
        self._completed: dict[str, _Completed] = {}
        # By identity: endings that are left out stay in `_pending` until they are swept.
        self._left_out: set[int] = set()

    def add(self, endings: Iterable[Ending]) -> None:
        """Adds the endings of a committed batch; batches of one shard come in order. If it raises,
        none is lost: the ending that failed and those behind it wait, and are tried first the next
        time.
        """
        line = self._line
        line.extend(endings)
        while line:
            self._take(line[0])
            line.popleft()

    def is_line_too_long(self) -> bool:
        """Returns whether more endings wait to be added than memory is for."""
        return len(self._line) > LINE_MAX

    def _take(self, ending: Ending) -> None:
        if isinstance(ending, _PASSED_ON):
            self._pending.append(ending)
        elif ending.kept:
            if ending.state is _COMPLETED and not self._is_wanted(ending):
                self._trim(ending)
            self._pending.append(ending)

    def _is_wanted(self, ending: RunsEnded | JobsEnded) -> bool:
        """Returns whether live jobs may read the results: then all are written."""
        if not self._wanted:
            return False
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
        self._sweep()
        pending, self._pending = self._pending, []
        completed, self._completed = self._completed, {}
        trimmed = [
            Trimmed(queue, _COMPLETED, runs)
            for queue, of_queue in completed.items()
            if (runs := of_queue.left_out_runs())
        ]
        completed.clear()
        ops = operations(_drain(pending))
        while (piece := _piece_of(ops, budget_items)) or trimmed:
            yield piece, trimmed
            trimmed = []

    def _trim(self, ending: RunsEnded | JobsEnded) -> None:
        """Leaves out the oldest completed jobs of a queue that keeps no more."""
        queue = _queue_of(ending)
        completed = self._completed.get(queue.name)
        if completed is None:
            completed = self._completed[queue.name] = _Completed()
        limit = max(self._completed_max, queue.settings.retention.count or 0)
        self._left_out.update(completed.add(ending, limit))
        if len(self._left_out) > max(SWEPT_MIN, len(self._pending) // 2):
            self._sweep()

    def _sweep(self) -> None:
        if self._left_out:
            left_out = self._left_out
            self._pending = [ending for ending in self._pending if id(ending) not in left_out]
            left_out.clear()


class _Completed:
    """The completed jobs of one queue, oldest first, and those that were left out. The latter are
    marked in an array per lot, so that a thousand acks in any order cost a thousand assignments and
    become few runs.
    """

    __slots__ = ("_count", "_endings", "_marks", "_runs")

    def __init__(self) -> None:
        self._count = 0
        self._endings: deque[tuple[RunsEnded | JobsEnded, int]] = deque()
        self._marks: dict[int, bytearray] = {}
        self._runs: list[tuple[int, int]] = []

    def add(self, ending: RunsEnded | JobsEnded, limit: int) -> Iterator[int]:
        """Adds the newest ending, and yields the identities of those that are left out for it."""
        count = sum(ending.counts) if isinstance(ending, RunsEnded) else len(ending.jobs)
        self._count += count
        self._endings.append((ending, count))
        while self._count - self._endings[0][1] >= limit:
            oldest, count = self._endings.popleft()
            self._count -= count
            self._leave_out(oldest)
            yield id(oldest)

    def left_out_runs(self) -> list[tuple[int, int]]:
        """Returns all that was left out by id, in as few runs as possible."""
        runs = self._runs
        for base, mark in self._marks.items():
            start = mark.find(1)
            while start >= 0:
                end = mark.find(0, start)
                end = len(mark) if end < 0 else end
                runs.append((base + start, end - start))
                start = mark.find(1, end)
        return _joined(runs)

    def _leave_out(self, ending: RunsEnded | JobsEnded) -> None:
        if isinstance(ending, JobsEnded):
            self._runs += _joined([(job.id, 1) for job in ending.jobs])
            return
        base = ending.lot.first_id
        mark = self._marks.get(base)
        if mark is None:
            mark = self._marks[base] = bytearray(len(ending.lot.payloads))
        for start, count in zip(ending.starts, ending.counts, strict=True):
            mark[start - base : start - base + count] = b"\1" * count


def _queue_of(ending: RunsEnded | JobsEnded) -> Queue:
    return ending.lot.queue if isinstance(ending, RunsEnded) else ending.jobs[0].queue


def _drain(pending: list[Ending]) -> Iterator[Ending]:
    """Yields endings in order, and frees each before the next: to free a million at once, with
    their jobs, takes some tenths of a second.
    """
    pending.reverse()
    while pending:
        yield pending.pop()


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


def _joined(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns runs in order, consecutive ones joined."""
    joined: list[tuple[int, int]] = []
    end = -1
    for first_id, count in sorted(runs):
        if first_id == end:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((first_id, count))
        end = first_id + count
    return joined
