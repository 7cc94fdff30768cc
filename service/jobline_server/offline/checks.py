"""Checks the files of a store: whether a server would start on them, and all that it would find.

A start reads what it needs and stops at the first loss; this reads everything, and goes on. The
rules are those of a start: the cases of `recovery_cases`, and the checksums that the store writes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator

from jobline_server.offline import ended_checks, journal_checks
from jobline_server.offline.findings import Checked, Progress
from jobline_server.offline.opening import FORMATS, StoreFiles, check_regular, opened
from jobline_server.storage.recovery_cases import PROMISE_MISSING
from jobline_server.storage.sqlite import belonging, bootstrap
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.store import PROMISE_FILE

Note = tuple[int, bool, int | None]


def check(files: StoreFiles, progress: Progress) -> Iterator[Checked]:
    """Yields what was found, file by file. Raises `CannotRead` for a file that cannot be read at
    all."""
    note: Note | None = None
    for name in files.names:
        with opened(files, name) as (connection, kind):
            yield from _structure(connection, name, kind, progress)
            if kind == DATABASE_FILE:
                note = yield from _jobline(connection, files, name, progress)
            else:
                yield from _finished(connection, files, name, note, progress)
    if files.whole:
        for name in FORMATS.keys() - set(files.names):
            had = name == DATABASE_FILE or (note is not None and note[2] is not None)
            if had:
                yield Checked(name, "is missing", is_damaged=True)


def _structure(
    connection: sqlite3.Connection, name: str, kind: str, progress: Progress
) -> Iterator[Checked]:
    """Checks pages, indices and the schema, which checksums of rows say nothing of."""
    progress.begin(f"{name}: pages and indices", None)
    try:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        is_ours = bootstrap.has_schema_of(connection, FORMATS[kind])
    except sqlite3.Error as error:
        yield Checked(name, f"its pages are damaged: {error}", is_damaged=True)
        return
    if found != "ok":
        yield Checked(name, f"its pages are damaged: {found}", is_damaged=True)
    elif not is_ours:
        yield Checked(name, "its schema is not the one of its format", is_damaged=True)
    else:
        yield Checked(name, f"format {FORMATS[kind].version}, pages and indices are whole")


def _jobline(
    connection: sqlite3.Connection, files: StoreFiles, name: str, progress: Progress
) -> Generator[Checked, None, Note | None]:
    """Checks jobline.db; returns what it notes of the files beside it, None if that is damaged."""
    note: Note | None = None
    try:
        note = belonging.note_of(connection)
        if files.whole:
            yield from _watermark(connection, files, is_noted=note[1])
        yield from journal_checks.journals(connection, progress)
        yield from journal_checks.items_of(connection, progress)
        yield from journal_checks.set_apart(connection)
    except (sqlite3.Error, TypeError) as error:
        yield Checked(name, f"cannot be read any further: {error}", is_damaged=True)
    return note


def _watermark(
    connection: sqlite3.Connection, files: StoreFiles, *, is_noted: bool
) -> Iterator[Checked]:
    file = files.path(PROMISE_FILE)
    if os.path.lexists(file):
        check_regular(file)
        yield from journal_checks.watermarks(connection, file.read_bytes())
    elif is_noted:
        yield Checked(PROMISE_FILE, str(PROMISE_MISSING), is_damaged=True)


def _finished(
    connection: sqlite3.Connection,
    files: StoreFiles,
    name: str,
    note: Note | None,
    progress: Progress,
) -> Iterator[Checked]:
    try:
        if files.whole and note is not None:
            case = belonging.case_of(note[0], note[2], belonging.mark(connection))
            if case is not None:
                yield Checked(name, str(case), is_damaged=True)
        yield from ended_checks.parts(connection, progress)
        yield from ended_checks.tallies(connection, progress)
    except (sqlite3.Error, TypeError) as error:
        yield Checked(name, f"cannot be read any further: {error}", is_damaged=True)
