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
from jobline_server.offline.opening import (
    FORMATS,
    CannotRead,
    StoreFiles,
    Why,
    content_of,
    opened,
)
from jobline_server.storage.recovery_cases import PROMISE_MISSING
from jobline_server.storage.sqlite import belonging, bootstrap
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.store import PROMISE_FILE

Note = tuple[int, bool, int | None]


def check(files: StoreFiles, progress: Progress) -> Iterator[Checked]:
    """Yields what was found, file by file; one that cannot be read at all is damage, too. Raises
    `CannotRead` for files of another format, and for a single one that is nothing of Jobline's.
    """
    note: Note | None = None
    for name in files.names:
        try:
            with opened(files, name) as (connection, kind):
                yield from _structure(connection, name, kind, progress)
                if kind == DATABASE_FILE:
                    note = yield from _jobline(connection, files, name, progress)
                else:
                    yield from _finished(connection, files, name, note, progress)
        except CannotRead as error:
            if error.why is Why.OTHER_FORMAT or (error.why is Why.FOREIGN and not files.whole):
                raise
            yield _unread(files, name, str(error))
        except OSError as error:
            yield _unread(files, name, f"cannot be read: {(error.strerror or str(error)).lower()}")
    if files.whole:
        for name in FORMATS.keys() - set(files.names):
            had = name == DATABASE_FILE or (note is not None and note[2] is not None)
            if had:
                yield Checked(name, "is missing", is_damaged=True)


def _unread(files: StoreFiles, name: str, sentence: str) -> Checked:
    """Returns a line of a file that nothing is known of; the sentence may begin with its name."""
    found = sentence.removeprefix(str(files.path(name))).removeprefix(name).strip()
    return Checked(name, found, is_damaged=True)


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
    if not os.path.lexists(file):
        if is_noted:
            yield Checked(PROMISE_FILE, str(PROMISE_MISSING), is_damaged=True)
        return
    try:
        content = content_of(file)
    except CannotRead as error:
        yield _unread(files, PROMISE_FILE, str(error))
        return
    yield from journal_checks.watermarks(connection, content)


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
