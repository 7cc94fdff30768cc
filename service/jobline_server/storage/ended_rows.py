"""Makes operations for the ended store from endings.

Consecutive jobs of a lot that ended alike become one row, even if they ended one by one, in any
order and at different times. Changes to ended jobs keep their order: no row combines endings before
and after a change.

After a crash the journal has all endings since a checkpoint at once. A row counts as ended with the
last of its jobs. So jobs that ended far apart share no row: otherwise they would be found, aged and
deleted by the time of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobline_server.engine.endings import (
    EndedChange,
    Ending,
    JobsEnded,
    OperationNoted,
    QueueGone,
    RunsEnded,
)
from jobline_server.engine.job import Job
from jobline_server.engine.operations import Operation, OperationState
from jobline_server.engine.values import JobOptions, JobState
from jobline_server.storage.codec.ended import encode_ended_job, encode_ended_run
from jobline_server.storage.codec.operations import encode_operation
from jobline_server.storage.ended_store import (
    EndedOp,
    EndedRow,
    MarkStale,
    PutEnded,
    PutOperation,
    RemoveEnded,
    RemoveQueue,
)
from jobline_server.storage.operations import OperationRow

# A look-up of one job reads its whole row, so rows are small.
ROW_JOBS_MAX = 1_000
ROW_BYTES_MAX = 1 << 20
# The most time between the jobs of a row. Rows are written every second, under load more rarely.
ROW_SPAN_MS = 2_000

EndedRun = tuple[int, int, int]
"""First id, count, and when they ended."""
Alike = tuple[int, JobState, int, str]
"""What runs have in common that may share a row: first id of the lot, state, delivery, worker."""


def operations(pending: Iterable[Ending]) -> Iterator[EndedOp]:
    """Yields the operations of endings, made on demand."""
    alike: dict[Alike, list[RunsEnded]] = {}
    for ending in pending:
        if isinstance(ending, RunsEnded):
            key = (ending.lot.first_id, ending.state, ending.delivery, ending.worker)
            alike.setdefault(key, []).append(ending)
        elif isinstance(ending, JobsEnded):
            for job in ending.jobs:
                yield PutEnded(_job_row(ending, job))
        elif isinstance(ending, OperationNoted):
            yield PutOperation(_operation_row(ending.operation))
        else:
            yield from _rows_of_runs(alike)
            yield from _change_operations(ending)
    yield from _rows_of_runs(alike)


def _rows_of_runs(alike: dict[Alike, list[RunsEnded]]) -> Iterator[EndedOp]:
    """Yields the rows of all groups, in the order of their first runs, and frees each group."""
    groups = list(alike.values())
    alike.clear()
    groups.reverse()
    while groups:
        yield from _run_rows(groups.pop())


def _change_operations(change: EndedChange | QueueGone) -> Iterator[EndedOp]:
    if isinstance(change, QueueGone):
        yield RemoveQueue(change.queue)
        return
    for first_id, count in zip(change.starts, change.counts, strict=True):
        if change.state is None:
            yield RemoveEnded(first_id, count)
        else:
            yield MarkStale(first_id, count, change.at_ms, change.delete_ms)


def _operation_row(operation: Operation) -> OperationRow:
    has_undone = operation.state is OperationState.DONE
    return OperationRow(
        id=operation.id,
        began_ms=operation.began_ms,
        ended_ms=operation.ended_ms,
        principal=operation.principal,
        verb=operation.verb,
        queue=operation.queue,
        undoes=operation.undoes if has_undone else "",
        blob=encode_operation(operation),
    )


def _job_row(ending: JobsEnded, job: Job) -> EndedRow:
    error, for_readers = ending.error, ending.for_readers
    return EndedRow(
        first_id=job.id,
        count=1,
        queue=job.queue.name,
        name=job.options.name,
        state=int(ending.state),
        ended_ms=ending.ended_ms,
        reason=int(ending.reason),
        error_type=error.type if error else "",
        error_message=error.message if error else "",
        blob=encode_ended_job(ending, job),
        due_ms=ending.ended_ms if for_readers else _due_ms(job.options, ending.ended_ms),
        keep_count=None if for_readers else job.options.retention.count,
        retry_ms=ending.retry_ms(job),
        delete_after_ms=0 if for_readers else job.options.retention.delete_after_ms,
    )


def _run_rows(alike: list[RunsEnded]) -> Iterator[EndedOp]:
    """Yields the rows of runs of one lot, state and lease: consecutive ones share a row of a
    bounded size."""
    lot = alike[0].lot
    largest = lot.payloads.job_bytes_max
    jobs_max = ROW_BYTES_MAX // largest if largest else ROW_JOBS_MAX
    runs = sorted(
        (start, count, ending.ended_ms)
        for ending in alike
        for start, count in zip(ending.starts, ending.counts, strict=True)
    )
    for chunk in _chunks(runs, min(max(jobs_max, 1), ROW_JOBS_MAX)):
        yield PutEnded(_run_row(alike[0], chunk))


def _chunks(runs: list[EndedRun], jobs_max: int) -> Iterator[list[EndedRun]]:
    """Yields sorted runs in lists without gaps, of up to `jobs_max` jobs each that ended within
    `ROW_SPAN_MS` of each other.
    """
    chunk: list[EndedRun] = []
    room, end, low_ms, high_ms = jobs_max, 0, 0, 0
    for run in runs:
        start, count, ended_ms = run
        # Most, where jobs are acked in any order: neighbours of one job each.
        if start == end and count <= room and low_ms <= ended_ms <= high_ms:
            chunk.append(run)
            room -= count
            end += count
            continue
        while count:
            low_ms, high_ms = min(low_ms, ended_ms), max(high_ms, ended_ms)
            if chunk and (start != end or not room or high_ms - low_ms > ROW_SPAN_MS):
                yield chunk
                chunk, room = [], jobs_max
            if not chunk:
                low_ms = high_ms = ended_ms
            part = min(count, room)
            chunk.append((start, part, ended_ms))
            room -= part
            count -= part
            start = end = start + part
    if chunk:
        yield chunk


def _run_row(ending: RunsEnded, chunk: list[EndedRun]) -> EndedRow:
    first_id = chunk[0][0]
    count = chunk[-1][0] + chunk[-1][1] - first_id
    times = {ended_ms for _, _, ended_ms in chunk}
    last_ms, moments = max(times), list[int]()
    if len(times) > 1:
        moments = [ended_ms for _, part, ended_ms in chunk for _ in range(part)]
    options = ending.lot.options
    return EndedRow(
        first_id=first_id,
        count=count,
        queue=ending.lot.queue.name,
        name=options.name,
        state=int(ending.state),
        ended_ms=last_ms,
        reason=int(ending.reason),
        error_type="",
        error_message="",
        blob=encode_ended_run(ending, first_id, count, moments),
        due_ms=_due_ms(options, last_ms),
        keep_count=options.retention.count,
        delete_after_ms=options.retention.delete_after_ms,
    )


def _due_ms(options: JobOptions, ended_ms: int) -> int | None:
    """Returns when an age of their own makes jobs stale; None if they have none."""
    age_ms = options.retention.age_ms
    return None if age_ms is None else ended_ms + age_ms
