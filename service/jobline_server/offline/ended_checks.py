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
    rows, jobs = connection.execute(_SQL["count_parts"]).fetchone()
    done = progress.begin("ended jobs", rows)
    bad, bad_jobs = Named(), 0
    for found in connection.execute(_SQL["every_part"]):
        done(1)
        first_id, count = found[:2]
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
    progress.begin("counts of ended jobs", None)
    wrong = connection.execute(_SQL["wrong_tallies"]).fetchone()[0]
    if wrong:
        what = f"{wrong:,} groups of queue, state and error have other jobs than are counted"
        yield Checked("ended jobs", what, is_damaged=True)
