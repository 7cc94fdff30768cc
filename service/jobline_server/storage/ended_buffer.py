"""The shelf: where jobs that ended wait for the finished file.

Endings of committed turns gather here as they are, in batches that cost next to nothing. When they
are taken, neighbours of a lot that ended alike become one row even if they were acked one by one,
in any order; what is not kept was never here; and of completed jobs only the newest of each queue
are left, as many as it keeps at most. Those that were left out are reported, so that a fact can say
that they are deleted; they never cost the file anything.

Changes to ended jobs (stale, deleted, put back, queue gone) keep their place among the endings:
rows never reach across one. None speaks of a job that was left out: whoever changes an ended job
has found it in the file.

After a crash the journal tells of endings again. They go through a shelf as before: the operations
say what an id is from then on, so it does no harm if the file holds some of them already. What is
left out then needs no fact: counts are read from the file afterwards.

Nothing is lost with the shelf: the journal has it all until a checkpoint, before which the caller
takes everything, writes it and makes it durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobline_server.engine import limits
from jobline_server.engine.endings import EndedChange, Ending, JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState
from jobline_server.storage.ended_rows import operations
from jobline_server.storage.ended_store import EndedOp, PutEnded

# A slice takes about 10 ms: a row is one item of its budget, and one more for so many bytes of it.
BUDGET_ITEMS = 1_000
BYTES_AN_ITEM = 4_096
# Endings that were left out are swept off the shelf when there are this many, and half of it is.
SWEPT_MIN = 1_000
# Endings in line because the first of them could not be taken. With more the process has to stop,
# as after a write that failed: the journal has them all, and a start takes them from there.
LINE_MAX = 100_000

_COMPLETED = JobState.COMPLETED


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Jobs that ended in this state and never went to the file, as (first id, count) of runs."""

    queue: str
    state: JobState
    runs: list[tuple[int, int]]


Taken = tuple[list[EndedOp], list[Trimmed]]


class EndedBuffer:
    """What ended and is not in the finished file yet, of all shards of a store."""

    __slots__ = ("_completed", "_completed_max", "_left_out", "_line", "_pending")

    def __init__(self, completed_max: int = limits.COMPLETED_KEPT_MAX) -> None:
        self._completed_max = completed_max
        self._line: deque[Ending] = deque()
        self._pending: list[Ending] = []
        self._completed: dict[str, _Completed] = {}
        # By identity: what is left out still lies in `_pending` until it is swept off.
        self._left_out: set[int] = set()

    def add(self, endings: Iterable[Ending]) -> None:
        """Takes endings of a committed turn, in order; turns of one shard come in order. If it
        raises, none is lost: the one that it was about and those behind it stay in line, and are
        tried first the next time.
        """
        line = self._line
        line.extend(endings)
        while line:
            self._take(line[0])
            line.popleft()

    def is_line_too_long(self) -> bool:
        """Whether more endings were given to `add`, and not taken, than memory is for."""
        return len(self._line) > LINE_MAX

    def _take(self, ending: Ending) -> None:
        if isinstance(ending, EndedChange | QueueGone):
            self._pending.append(ending)
        elif ending.kept:
            if ending.state is _COMPLETED:
                self._trim(ending)
            self._pending.append(ending)

    def take(self) -> Taken:
        """Hands out everything, as operations in order, and says what was left out."""
        ops: list[EndedOp] = []
        trimmed: list[Trimmed] = []
        for some_ops, some_trimmed in self.slices():
            ops += some_ops
            trimmed += some_trimmed
        return ops, trimmed

    def slices(self, budget_items: int = BUDGET_ITEMS) -> Iterator[Taken]:
        """What `take` would hand out, a bounded piece at a time, for callers that must not stand
        still. What is added meanwhile is for the next time.
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
        ops = operations(_let_go(pending))
        while (piece := _piece_of(ops, budget_items)) or trimmed:
            yield piece, trimmed
            trimmed = []

    def _trim(self, ending: RunsEnded | JobsEnded) -> None:
        """Leaves out the oldest completed jobs of a queue that has more than it keeps."""
        queue = _queue_of(ending)
        completed = self._completed.get(queue.name)
        if completed is None:
            completed = self._completed[queue.name] = _Completed()
        most = max(self._completed_max, queue.settings.retention.count or 0)
        self._left_out.update(completed.add(ending, most))
        if len(self._left_out) > max(SWEPT_MIN, len(self._pending) // 2):
            self._sweep()

    def _sweep(self) -> None:
        if self._left_out:
            left_out = self._left_out
            self._pending = [ending for ending in self._pending if id(ending) not in left_out]
            left_out.clear()


class _Completed:
    """The completed jobs of one queue, oldest first, and what was left out of them. Each lot is a
    row of marks, so that a thousand acks in any order cost a thousand assignments, and few runs
    afterwards.
    """

    __slots__ = ("_count", "_endings", "_marks", "_runs")

    def __init__(self) -> None:
        self._count = 0
        self._endings: deque[tuple[RunsEnded | JobsEnded, int]] = deque()
        self._marks: dict[int, bytearray] = {}
        self._runs: list[tuple[int, int]] = []

    def add(self, ending: RunsEnded | JobsEnded, most: int) -> Iterator[int]:
        """Adds to the newest and yields the identity of each ending that is left out for it."""
        count = sum(ending.counts) if isinstance(ending, RunsEnded) else len(ending.jobs)
        self._count += count
        self._endings.append((ending, count))
        while self._count - self._endings[0][1] >= most:
            oldest, count = self._endings.popleft()
            self._count -= count
            self._leave_out(oldest)
            yield id(oldest)

    def left_out_runs(self) -> list[tuple[int, int]]:
        """All that was left out, in order of id, as few runs as there can be."""
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


def _let_go(pending: list[Ending]) -> Iterator[Ending]:
    """Endings in order. Each goes when it was looked at: a million at once, with their jobs, take
    some tenths of a second to free.
    """
    pending.reverse()
    while pending:
        yield pending.pop()


def _piece_of(ops: Iterator[EndedOp], budget_items: int) -> list[EndedOp]:
    """Operations until the budget is spent."""
    piece: list[EndedOp] = []
    spent = 0
    for op in ops:
        piece.append(op)
        spent += 1 + (len(op.row.blob) // BYTES_AN_ITEM if isinstance(op, PutEnded) else 0)
        if spent >= budget_items:
            break
    return piece


def _joined(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs in order, neighbours as one."""
    joined: list[tuple[int, int]] = []
    end = -1
    for first_id, count in sorted(runs):
        if first_id == end:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((first_id, count))
        end = first_id + count
    return joined
