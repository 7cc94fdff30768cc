"""The slow twin of `history.columns`: rows as dictionaries, one for each job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobline_server.history.rows import Later, Rows, Sizes


def ids_of(rows: Rows) -> list[int]:
    counts = [1] * len(rows.starts) if rows.counts is None else rows.counts.tolist()
    runs = zip(rows.starts.tolist(), counts, strict=True)
    return [job_id for start, count in runs for job_id in range(start, start + count)]


def expanded(rows: Rows) -> Iterator[dict[str, Any]]:
    """Yields what a row of each job has, without what is NULL."""
    columns = {
        name: value.each() if isinstance(value, Sizes | Later) else value
        for name, value in rows.columns.items()
    }
    ids: list[int | None] = [*ids_of(rows)] or [None]
    assert len(ids) == rows.total
    for value in columns.values():
        assert not isinstance(value, list) or len(value) == rows.total
    for index, job_id in enumerate(ids):
        own = {
            name: value[index] if isinstance(value, list) else value
            for name, value in columns.items()
        }
        found = {"at": rows.at, "job_id": job_id, **own}
        yield {name: value for name, value in found.items() if value is not None}
