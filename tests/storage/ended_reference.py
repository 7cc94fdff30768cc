"""Ended jobs for tests, and the reference: a dictionary from id to what is kept of it. That is all
the interface promises, however runs come apart inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.values import JobState
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedOp,
    EndedPage,
    EndedQuery,
    EndedRow,
    EndedSpan,
    PutEnded,
    PutOperation,
    RemoveEnded,
    RemoveQueue,
)

COMPLETED, DEAD, STALE = int(JobState.COMPLETED), int(JobState.DEAD), int(JobState.STALE)
CANCELLED = int(JobState.CANCELLED)


def run_of(first_id: int, count: int = 1, **fields: object) -> EndedRow:
    """A run of completed jobs that ended at 1,000; `fields` replace the rest."""
    row: dict[str, object] = {
        "queue": "emails",
        "name": "",
        "state": COMPLETED,
        "ended_ms": 1_000,
        "reason": 0,
        "error_type": "",
        "error_message": "",
        "blob": b"%d+%d" % (first_id, count),
    }
    return EndedRow(first_id=first_id, count=count, **{**row, **fields})  # type: ignore[arg-type]


def put(first_id: int, count: int = 1, **fields: object) -> PutEnded:
    """Puts `run_of` the same."""
    return PutEnded(run_of(first_id, count, **fields))


def ids_of(page: EndedPage | Sequence[EndedSpan]) -> list[int]:
    """The ids of a page or of spans, one by one."""
    parts = page.parts if isinstance(page, EndedPage) else page
    return [i for part in parts for i in range(part.first_id, part.first_id + part.count)]


class Reference:
    """Ended jobs one by one."""

    def __init__(self) -> None:
        self.jobs: dict[int, EndedRow] = {}

    def write(self, ops: Sequence[EndedOp]) -> None:
        for op in ops:
            self._apply(op)

    def _apply(self, op: EndedOp) -> None:
        if isinstance(op, PutOperation):
            return
        if isinstance(op, RemoveQueue):
            self.jobs = {i: row for i, row in self.jobs.items() if row.queue != op.queue}
            return
        if isinstance(op, PutEnded):
            ids = range(op.row.first_id, op.row.first_id + op.row.count)
            self.jobs.update(dict.fromkeys(ids, op.row))
            return
        for job_id in range(op.first_id, op.first_id + op.count):
            row = self.jobs.get(job_id)
            if row is None:
                continue
            if isinstance(op, RemoveEnded):
                del self.jobs[job_id]
            elif row.state != STALE:
                self.jobs[job_id] = stale(row, op.at_ms, op.delete_ms)


def stale(row: EndedRow, at_ms: int, delete_ms: int) -> EndedRow:
    """The row once it is stale."""
    if row.delete_after_ms is not None:
        delete_ms = min(at_ms + row.delete_after_ms, delete_ms)
    fields = {name: getattr(row, name) for name in EndedRow.__slots__}
    fields.update(state=STALE, former_state=row.state, stale_ms=at_ms, delete_ms=delete_ms)
    return EndedRow(**fields)


async def row_of(store: EndedJobStore, job_id: int) -> EndedRow | None:
    """The row that holds a job."""
    return (await store.get_many([job_id])).rows.get(job_id)


async def everything(store: EndedJobStore, page_size: int = 1_000) -> dict[int, EndedRow]:
    """All that is kept, by id, through pages."""
    found: dict[int, EndedRow] = {}
    after: int | None = -1
    while after is not None:
        page = await store.list(EndedQuery(after_id=after, limit=page_size))
        for part in page.parts:
            for job_id in range(part.first_id, part.first_id + part.count):
                assert job_id > max(found, default=-1), "ids come in order, none twice"
                found[job_id] = part.row
        assert page.resume_after is None or page.resume_after > after
        after = page.resume_after
    return found
