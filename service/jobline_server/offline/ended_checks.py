"""Checks of finished.db: each part of ended jobs by its checksum, and the counts of all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from jobline_server.offline.findings import Checked, Named, Progress
from jobline_server.storage.sqlite.ended_queries import row_of
from jobline_server.storage.sqlite.statements import load

_SQL = load("offline.sql")


def parts(connection: sqlite3.Connection, progress: Progress) -> Iterator[Checked]:
    """Checks what every part was written with."""
    rows = _rows_of(connection)
    done = progress.begin("ended jobs", rows)
    bad, bad_jobs, jobs = Named(), 0, 0
    for found in connection.execute(_SQL["every_part"]):
        done(1)
        first_id, count = found[:2]
        jobs += count
        if not _is_good(found):
            bad.add(str(first_id) if count == 1 else f"{first_id} and {count - 1} behind it")
            bad_jobs += count
    if bad.count:
        what = f"{bad_jobs:,} of {jobs:,} have a record with a wrong checksum: {bad}"
        yield Checked("ended jobs", what, is_damaged=True)
    else:
        yield Checked("ended jobs", f"{jobs:,} in {rows:,} records, all with the right checksum")


def _is_good(found: tuple[object, ...]) -> bool:
    try:
        return row_of(found) is not None
    except TypeError:  # NULL, or text, where a number or a blob was
        return False


def tallies(connection: sqlite3.Connection, progress: Progress) -> Iterator[Checked]:
    """Compares the counts that the file keeps with what is there."""
    done = progress.begin("counts of ended jobs", _rows_of(connection))
    counted: dict[tuple[object, ...], list[int]] = {}
    for *group, jobs, size in connection.execute(_SQL["every_tallied"]):
        done(1)
        sums = counted.setdefault(tuple(group), [0, 0])
        sums[0] += jobs
        sums[1] += size
    kept = {tuple(row[:-2]): list(row[-2:]) for row in connection.execute(_SQL["tally"])}
    wrong = sum(kept.get(group) != sums for group, sums in counted.items())
    if wrong:
        what = f"{wrong:,} groups of queue, state and error have other jobs than are counted"
        yield Checked("ended jobs", what, is_damaged=True)


def _rows_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute(_SQL["count_parts"]).fetchone()[0])
