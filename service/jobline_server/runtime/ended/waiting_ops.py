"""Operations that wait for room in the ended store, in order: what they will make of its jobs."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from jobline_server.engine.values import JobState
from jobline_server.runtime.pace import Pace
from jobline_server.storage.blob_parts import has_parts
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedOp,
    EndedPart,
    EndedQuery,
    EndedRow,
    EndedSpan,
    MarkStale,
    PutEnded,
    PutOperation,
    RemoveEnded,
    RemoveQueue,
)

# Operations of a write: the most that are repeated after a failure.
WRITE_OPS = 500
# A write ends with the operation that reaches this, which is what a full disk must have room for.
WRITE_BYTES = 2 << 20
# What an operation takes beside its row, about: a share of pages of indexes.
_OP_BYTES = 1 << 10

QueueState = tuple[str, int]


def bytes_of(ops: Sequence[EndedOp]) -> int:
    """Returns what operations take in the store, about."""
    rows = [len(op.row.blob) for op in ops if isinstance(op, PutEnded | PutOperation)]
    return sum(rows) + _OP_BYTES * len(ops)


def first_write(ops: Sequence[EndedOp]) -> Sequence[EndedOp]:
    """Returns a copy of the first operations, as many as are written together; what was changed of
    a row since it was put goes with it.
    """
    size = 0
    for number, op in enumerate(ops):
        if isinstance(op, PutEnded | PutOperation):
            if number >= WRITE_OPS or size >= WRITE_BYTES:
                return ops[:number]
            size += len(op.row.blob)
    return ops[:]


def half(ops: Sequence[EndedOp]) -> Sequence[EndedOp]:
    """Returns the first half of some operations, none if they are one row and its changes."""
    puts = [at for at, op in enumerate(ops) if isinstance(op, PutEnded | PutOperation)]
    return ops[: puts[len(puts) // 2]] if len(puts) > 1 else []


def has_rows(ops: Sequence[EndedOp]) -> bool:
    """Returns whether any of some operations puts jobs."""
    return any(isinstance(op, PutEnded) for op in ops)


def changes_of(ops: Sequence[EndedOp]) -> Sequence[EndedOp]:
    """Returns those that change jobs of the store: they make room, and need next to none."""
    return [op for op in ops if not isinstance(op, PutEnded | PutOperation)]


def cleared(ops: Sequence[EndedOp]) -> Sequence[EndedOp]:
    """Returns the changes, and others that leave the store nothing of the jobs that are put."""
    return [
        RemoveEnded(op.row.first_id, op.row.count) if isinstance(op, PutEnded) else op
        for op in ops
        if not isinstance(op, PutOperation)
    ]


class _Outcomes:
    """What operations make of some jobs, in order of id: of each that they put the last row that
    was put, and as what it will be kept; None if it will not.
    """

    def __init__(self, job_ids: Sequence[int]) -> None:
        self._job_ids = job_ids
        self.by_id: dict[int, tuple[EndedRow, EndedRow] | None] = {}

    def follow(self, op: EndedOp) -> None:
        """Takes the next operation."""
        known = self.by_id
        if isinstance(op, PutEnded):
            row = op.row
            known.update(dict.fromkeys(self._within(row.first_id, row.count), (row, row)))
        elif isinstance(op, RemoveEnded):
            gone = [job_id for job_id in self._within(op.first_id, op.count) if job_id in known]
            known.update(dict.fromkeys(gone))
        elif isinstance(op, MarkStale):
            for job_id in self._within(op.first_id, op.count):
                if (one := known.get(job_id)) is not None:
                    known[job_id] = one[0], _made_stale(one[1], op)
        elif isinstance(op, RemoveQueue):
            gone = [job_id for job_id, one in known.items() if one and one[0].queue == op.queue]
            known.update(dict.fromkeys(gone))

    def _within(self, first_id: int, count: int) -> Sequence[int]:
        job_ids = self._job_ids
        return job_ids[bisect_left(job_ids, first_id) : bisect_left(job_ids, first_id + count)]


def find(ops: Sequence[EndedOp], job_ids: Sequence[int]) -> dict[int, EndedRow | None]:
    """Returns those of some jobs, in order of id, that operations put, with the row that will be
    kept of each, None if none will.
    """
    outcomes = _Outcomes(job_ids)
    for op in ops:
        outcomes.follow(op)
    return {job_id: one and one[1] for job_id, one in outcomes.by_id.items()}


async def settled(ops: Sequence[EndedOp]) -> list[EndedOp]:
    """Returns what still waits when the changes among operations were written: each row that is
    put, and behind it what has changed of its jobs. A row of which nothing is left does not wait.
    So no write leaves the store a job that was deleted.
    """
    pace, outcomes, kept = Pace(), await _outcomes(ops), list[EndedOp]()
    for op in ops:
        if isinstance(op, PutOperation):
            kept.append(op)
        elif isinstance(op, PutEnded):
            of_each = [outcomes[job_id] for job_id in _ids(op.row)]
            rows = [one[1] if one and one[0] is op.row else None for one in of_each]
            if any(rows):
                kept += [op, *_changes_since(op.row, rows)]
        await pace.rest()
    return kept


def _changes_since(put: EndedRow, rows: Sequence[EndedRow | None]) -> Iterator[EndedOp]:
    """Yields the changes that make the jobs of a row what they are now."""
    first_id = put.first_id
    for row, run in groupby(rows):
        count = len(list(run))
        if row is None:
            yield RemoveEnded(first_id, count)
        elif row is not put:
            yield MarkStale(first_id, count, row.stale_ms, row.delete_ms)
        first_id += count


async def _outcomes(ops: Sequence[EndedOp]) -> dict[int, tuple[EndedRow, EndedRow] | None]:
    """Returns what operations make of every job that they put, by id, in steps of the loop."""
    pace = Pace()
    job_ids = sorted({job_id for op in ops if isinstance(op, PutEnded) for job_id in _ids(op.row)})
    outcomes = _Outcomes(job_ids)
    outcomes.by_id.update(dict.fromkeys(job_ids))
    for op in ops:
        outcomes.follow(op)
        await pace.rest()
    return outcomes.by_id


async def parts(ops: Sequence[EndedOp], query: EndedQuery) -> list[EndedPart]:
    """Returns the parts that will be kept and pass a filter, by id, up to its limit of jobs."""
    found: list[EndedPart] = []
    room, pace = query.limit, Pace()
    for job_id, one in (await _outcomes(ops)).items():
        row = one[1] if one else None
        if room and row is not None and job_id > query.after_id and _passes(row, query):
            room -= 1
            last = found[-1] if found else None
            if last and last.row is row and last.first_id + last.count == job_id:
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(EndedPart(job_id, 1, row))
        await pace.rest()
    return found


def span_of(part: EndedPart) -> EndedSpan:
    """Returns a part without its row, as a scan by the time of the end does."""
    row = part.row
    size = len(row.blob) * part.count // row.count
    return EndedSpan(row.queue, row.state, part.first_id, part.count, row.ended_ms, size)


def _passes(row: EndedRow, query: EndedQuery) -> bool:
    after_ms, before_ms = query.ended_after_ms, query.ended_before_ms
    return (
        query.queue in ("", row.queue)
        and (not query.states or row.state in query.states)
        and (not query.reasons or row.reason in query.reasons)
        and query.name in (None, row.name)
        and query.error_type in ("", row.error_type)
        and query.error_contains in row.error_message
        and (after_ms is None or row.ended_ms >= after_ms)
        and (before_ms is None or row.ended_ms < before_ms)
        and has_parts(row.blob, query.blob_parts)
    )


async def counts_after(store: EndedJobStore, ops: Sequence[EndedOp]) -> dict[QueueState, int]:
    """Returns how many jobs will be kept, by queue and state, of a store that has none of those
    that are put.
    """
    counts = Counter(await store.counts())
    counts.update((one[1].queue, one[1].state) for one in (await _outcomes(ops)).values() if one)
    return dict(counts)


def _ids(row: EndedRow) -> range:
    return range(row.first_id, row.first_id + row.count)


def _made_stale(row: EndedRow, op: MarkStale) -> EndedRow:
    stale = int(JobState.STALE)
    if row.state == stale:
        return row
    own_ms = row.delete_after_ms
    delete_ms = op.delete_ms if own_ms is None else min(op.at_ms + own_ms, op.delete_ms)
    return replace(row, state=stale, former_state=row.state, stale_ms=op.at_ms, delete_ms=delete_ms)
