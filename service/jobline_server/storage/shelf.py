"""The shelf: where jobs that ended wait for the finished file.

Endings of committed turns gather here as they are, in batches that cost next to nothing. When they
are taken, neighbours of a lot that ended alike become one row even if they were acked one by one,
in any order; what is not kept was never here; and of completed jobs only the newest of each queue
are left. Those that were left out are reported, so that a fact can say that they are deleted; they
never cost the file anything.

Changes to ended jobs (stale, deleted, put back, queue gone) keep their place among the endings:
rows never reach across one, and nothing before one is left out, as the change may speak of it.

After a crash the journal tells of endings again. They go through a shelf as before: the operations
say what an id is from then on, so it does no harm if the file holds some of them already.

Nothing is lost with the shelf: the journal has it all until a checkpoint, before which the caller
takes everything, writes it and makes it durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from jobline_server.engine import limits
from jobline_server.engine.endings import EndedChange, EndedJobs, EndedRuns, Ending, QueueGone
from jobline_server.engine.values import JobState
from jobline_server.storage.ended_rows import operations
from jobline_server.storage.finished import EndedOp


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Jobs that ended in this state and never went to the file, as (first id, count) of runs."""

    queue: str
    state: JobState
    runs: list[tuple[int, int]]


Taken = tuple[list[EndedOp], list[Trimmed]]


class Shelf:
    """What ended and is not in the finished file yet, of all shards of a store."""

    __slots__ = ("_completed", "_completed_max", "_left_out", "_pending", "_trim_at")

    def __init__(self, completed_max: int = limits.COMPLETED_KEPT_MAX) -> None:
        self._completed_max = completed_max
        self._pending: list[Ending] = []
        self._completed: dict[str, int] = {}
        self._trim_at: dict[str, int] = {}
        self._left_out: dict[str, list[tuple[int, int]]] = {}

    def add(self, endings: Iterable[Ending]) -> None:
        """Takes endings of a committed turn, in order; turns of one shard come in order."""
        for ending in endings:
            if isinstance(ending, EndedChange | QueueGone):
                self._pending.append(ending)
            elif ending.kept:
                self._pending.append(ending)
                if ending.state is JobState.COMPLETED:
                    self._note_completed(ending)

    def take(self) -> Taken:
        """Hands out everything, as operations in order, and says what was left out."""
        ops: list[EndedOp] = []
        trimmed: list[Trimmed] = []
        for some_ops, some_trimmed in self.slices(limits.SLICE_ITEMS):
            ops += some_ops
            trimmed += some_trimmed
        return ops, trimmed

    def slices(self, ops_max: int) -> Iterator[Taken]:
        """What `take` would hand out, a bounded piece at a time, for callers that must not stand
        still. What is added meanwhile is for the next time.
        """
        for queue, count in self._completed.items():
            if count > self._completed_max:
                self._trim(queue)
        pending, self._pending = self._pending, []
        self._completed.clear()
        self._trim_at.clear()
        left_out, self._left_out = self._left_out, {}
        trimmed = [
            Trimmed(queue, JobState.COMPLETED, _joined(runs)) for queue, runs in left_out.items()
        ]
        ops = operations(pending)
        while (piece := list(islice(ops, ops_max))) or trimmed:
            yield piece, trimmed
            trimmed = []

    # Trimming.

    def _note_completed(self, ending: EndedRuns | EndedJobs) -> None:
        queue = _queue_of(ending)
        count = self._completed.get(queue, 0) + _count_of(ending)
        self._completed[queue] = count
        if count > self._trim_at.get(queue, 2 * self._completed_max):
            self._trim(queue)
            # What cannot be left out is not looked at again for each ending.
            self._trim_at[queue] = self._completed[queue] + self._completed_max

    def _trim(self, queue: str) -> None:
        """Leaves out all but the newest completed jobs of a queue, back to the last change."""
        room = self._completed_max
        kept: list[Ending] = []
        left_out: list[EndedRuns | EndedJobs] = []
        pending = self._pending
        while pending:
            ending = pending[-1]
            if isinstance(ending, EndedChange | QueueGone):
                break
            pending.pop()
            if ending.state is not JobState.COMPLETED or _queue_of(ending) != queue:
                kept.append(ending)
                continue
            (kept if room > 0 else left_out).append(ending)
            room -= _count_of(ending)
        pending.extend(reversed(kept))
        if left_out:
            self._completed[queue] -= sum(map(_count_of, left_out))
            self._left_out.setdefault(queue, []).extend(_runs_of(left_out))


def _queue_of(ending: EndedRuns | EndedJobs) -> str:
    return ending.lot.queue.name if isinstance(ending, EndedRuns) else ending.jobs[0].queue.name


def _count_of(ending: EndedRuns | EndedJobs) -> int:
    return sum(ending.counts) if isinstance(ending, EndedRuns) else len(ending.jobs)


def _runs_of(endings: list[EndedRuns | EndedJobs]) -> list[tuple[int, int]]:
    """The ids of endings as few runs. Each lot is a row of marks, so that a thousand acks in random
    order cost a thousand assignments and one search.
    """
    marks: dict[int, bytearray] = {}
    runs: list[tuple[int, int]] = []
    for ending in endings:
        if isinstance(ending, EndedJobs):
            runs += [(job.id, 1) for job in ending.jobs]
            continue
        base = ending.lot.first_id
        mark = marks.get(base)
        if mark is None:
            mark = marks[base] = bytearray(len(ending.lot.payloads))
        for start, count in zip(ending.starts, ending.counts, strict=True):
            mark[start - base : start - base + count] = b"\1" * count
    for base, mark in marks.items():
        start = mark.find(1)
        while start >= 0:
            end = mark.find(0, start)
            end = len(mark) if end < 0 else end
            runs.append((base + start, end - start))
            start = mark.find(1, end)
    return runs


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
