"""Counts the completed jobs of a queue that are on their way to the ended store, and marks those
that are left out, because the queue does not keep so many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge

from jobline_server.engine.endings import Ending, JobsEnded, RunsEnded
from jobline_server.engine.tables import IdTable

# Runs of jobs that were left out are told in facts of at least this many, but for the last.
RUNS_AT_ONCE = 1_000
# The ids of a block of jobs that were left out; a lot with fewer jobs is marked in blocks.
_BLOCK_BITS = 8
_BLOCK_IDS = 1 << _BLOCK_BITS


class Completed:
    """The completed jobs of one queue, oldest first, and those that were left out. The latter are
    marked, those of a large lot in an array of bytes, others by a bit each in a number for a block
    of ids, so that a thousand acks in any order cost a thousand assignments and become few runs.
    """

    __slots__ = ("_blocks", "_count", "_endings", "_lots")

    def __init__(self) -> None:
        self._count = 0
        # The number and the jobs of each ending. The endings go as they are written.
        self._endings: deque[tuple[int, int]] = deque()
        self._lots: dict[int, bytearray] = {}
        self._blocks: IdTable[int] = IdTable()

    def add(self, number: int, count: int, limit: int) -> Iterator[int]:
        """Adds the newest ending, by its number and its jobs, and yields the numbers of those that
        are left out for it, as the others have `limit` jobs.
        """
        self._count += count
        self._endings.append((number, count))
        while self._count - self._endings[0][1] >= limit:
            oldest, count = self._endings.popleft()
            self._count -= count
            yield oldest

    def leave_out(self, ending: Ending) -> None:
        """Marks the jobs of an ending that is left out."""
        if isinstance(ending, JobsEnded):
            self._mark_many([job.id for job in ending.jobs])
        elif isinstance(ending, RunsEnded):
            runs = zip(ending.starts, ending.counts, strict=True)
            first_id, count = ending.lot.first_id, len(ending.lot.payloads)
            if count < _BLOCK_IDS:
                self._mark_many([i for start, length in runs for i in range(start, start + length)])
                return
            mark = self._lots.get(first_id)
            if mark is None:
                mark = self._lots[first_id] = bytearray(count)
            for start, length in runs:
                if length == 1:  # most, where jobs are acked in any order
                    mark[start - first_id] = 1
                    continue
                mark[start - first_id : start - first_id + length] = b"\1" * length

    def _mark_many(self, job_ids: Iterable[int]) -> None:
        """Marks jobs, neighbours in one block at once: an ack in order has hundreds of them."""
        block, marks = -1, 0
        for job_id in job_ids:
            if job_id >> _BLOCK_BITS != block:
                if marks:
                    self._blocks[block] = marks
                block = job_id >> _BLOCK_BITS
                marks = self._blocks.find(block) or 0
            marks |= 1 << (job_id & _BLOCK_IDS - 1)
        if marks:
            self._blocks[block] = marks

    def left_out_runs(self) -> Iterator[list[tuple[int, int]]]:
        """Yields all that was left out by id, in order, in as few runs as possible."""
        runs: list[tuple[int, int]] = []
        for first_id, count in merge(self._runs_of_lots(), self._runs_of_blocks()):
            if runs and sum(runs[-1]) == first_id:
                runs[-1] = runs[-1][0], runs[-1][1] + count
                continue
            if len(runs) >= RUNS_AT_ONCE:
                yield runs
                runs = []
            runs.append((first_id, count))
        if runs:
            yield runs

    def _runs_of_lots(self) -> Iterator[tuple[int, int]]:
        for first_id, mark in sorted(self._lots.items()):
            start = mark.find(1)
            while start >= 0:
                end = mark.find(0, start)
                end = len(mark) if end < 0 else end
                yield first_id + start, end - start
                start = mark.find(1, end)

    def _runs_of_blocks(self) -> Iterator[tuple[int, int]]:
        for block in sorted(self._blocks):
            yield from _runs_of(block << _BLOCK_BITS, self._blocks[block])


def _runs_of(first_id: int, marks: int) -> list[tuple[int, int]]:
    """Returns the runs that are marked in a block."""
    runs: list[tuple[int, int]] = []
    while marks:
        start = (marks & -marks).bit_length() - 1
        # One more at the start of a run carries to the first bit behind it.
        marks += 1 << start
        end = (marks & -marks).bit_length() - 1
        marks ^= 1 << end
        runs.append((first_id + start, end - start))
    return runs
