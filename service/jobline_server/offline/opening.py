"""Opens the files of a store for reading, under the lock of their directory.

A database whose WAL is empty is opened as immutable: SQLite makes no file beside it. One that was
not closed has writes in its WAL, which are read through an index beside it, a `-shm` file. Where
there was none it is taken away as soon as SQLite has it open, so that nothing is left even if this
process is killed. Neither database nor WAL is changed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from jobline_server.storage.sqlite import bootstrap, ended_store
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE, Format
from jobline_server.storage.sqlite.ended_store import FINISHED_FILE
from jobline_server.storage.sqlite.files import DirectoryLock
from jobline_server.storage.sqlite.store import LOCK_FILE, PROMISE_FILE
from jobline_server.storage.store import StoreRefused

FORMATS: dict[str, Format] = {DATABASE_FILE: bootstrap.FORMAT, FINISHED_FILE: ended_store.FORMAT}
_MAGIC = b"SQLite format 3\0"
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class Why(Enum):
    """Why files are not read."""

    MISSING = "missing"
    FOREIGN = "foreign"
    OTHER_FORMAT = "other format"
    IN_USE = "in use"
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"


class CannotRead(Exception):
    """Files that are not read at all; the message is a sentence, and `advice` what to do."""

    def __init__(self, why: Why, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.advice = advice


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The files of a store by name: all of a directory, or the one that was asked for. `whole` says
    whether it is a directory, whose files are compared with each other.
    """

    directory: Path
    names: tuple[str, ...]
    whole: bool

    def path(self, name: str) -> Path:
        """Returns the path of a file."""
        return self.directory / name


def find(path: Path) -> StoreFiles:
    """Returns the files of a data directory, or the one of them that a path names. Raises
    `CannotRead`.
    """
    if not path.exists():
        raise CannotRead(Why.MISSING, f"there is no {path}")
    if not path.is_dir():
        if path.name == PROMISE_FILE or (path.name not in FORMATS and not _is_database(path)):
            raise CannotRead(
                Why.FOREIGN,
                f"{path} is no file of Jobline that can be read by itself",
                f"Give a data directory, or its {DATABASE_FILE} or {FINISHED_FILE}.",
            )
        return StoreFiles(path.parent, (path.name,), whole=False)
    names = tuple(name for name in FORMATS if os.path.lexists(path / name))
    if not names:
        raise CannotRead(
            Why.FOREIGN,
            f"{path} is no data directory of Jobline: it has no {DATABASE_FILE}",
            "Give the directory that `jobline serve --data` names.",
        )
    return StoreFiles(path, names, whole=True)


@contextmanager
def held(files: StoreFiles) -> Iterator[None]:
    """Keeps servers away from the directory for the length of the block. Raises `CannotRead` if one
    is at work there. Without a lock file, as in a copy of some files, none has been.
    """
    with ExitStack() as stack:
        lock = DirectoryLock(files.path(LOCK_FILE))
        if not os.path.lexists(files.path(LOCK_FILE)):
            yield
            return
        check_regular(files.path(LOCK_FILE))
        try:
            lock.take()
            stack.callback(lock.release)
        except StoreRefused as refusal:
            advice = "Stop that server, or look at a copy that was made while it was stopped."
            raise CannotRead(Why.IN_USE, str(refusal), advice) from refusal
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise _unreadable(files.path(LOCK_FILE), error) from error
            _hold_for_reading(files, stack)
        yield


def _hold_for_reading(files: StoreFiles, stack: ExitStack) -> None:
    """Takes a shared lock where nothing may be written."""
    descriptor = os.open(files.path(LOCK_FILE), os.O_RDONLY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotRead(Why.IN_USE, f"{files.directory} is in use by another process") from None


@contextmanager
def opened(files: StoreFiles, name: str) -> Iterator[tuple[sqlite3.Connection, str]]:
    """Opens a database of known format for the length of the block; yields it with which of the two
    it is, `jobline.db` or `finished.db`, whatever it is called now. Raises `CannotRead`.
    """
    file = files.path(name)
    if not _is_database(file):
        what = "is empty" if not file.stat().st_size else "does not begin like a database"
        raise CannotRead(Why.DAMAGED, f"{name} is damaged: it {what}")
    try:
        with _connected(file) as connection:
            kind = _kind_of(connection, file)
            if files.whole and kind != name:
                raise CannotRead(Why.DAMAGED, f"{name} is damaged: it is a {kind}")
            yield connection, kind
    except sqlite3.Error as error:
        advice = "`jobline verify` says more of it."
        raise CannotRead(Why.DAMAGED, f"{name} is damaged: {error}", advice) from error


@contextmanager
def _connected(file: Path) -> Iterator[sqlite3.Connection]:
    wal, index = (file.with_name(file.name + suffix) for suffix in ("-wal", "-shm"))
    has_writes = _has_writes(wal)
    is_own_index = has_writes and not os.path.lexists(index)
    if is_own_index and not os.access(file.parent, os.W_OK):
        raise CannotRead(
            Why.UNREADABLE,
            f"{file.name} was not closed by its server, and {file.parent} cannot be written",
            "Copy the directory to where you may write, and look at the copy.",
        )
    mode = "mode=ro" if has_writes else "immutable=1"
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?{mode}", uri=True, timeout=0, isolation_level=None
    )
    # A damaged text is one that has another checksum, not the end of a scan.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        connection.executescript("PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;")
        try:
            connection.execute("PRAGMA user_version").fetchone()  # the first look makes the index
        finally:
            if is_own_index:
                index.unlink(missing_ok=True)
        yield connection
    finally:
        connection.close()


def _has_writes(wal: Path) -> bool:
    """Returns whether there is something in a WAL. Raises `CannotRead` if it cannot be read."""
    if not os.path.lexists(wal):
        return False
    try:
        return bool(_start_of(wal))
    except CannotRead as error:
        name = wal.name.removesuffix("-wal")
        what = str(error).replace(str(wal), wal.name)
        raise CannotRead(error.why, f"{name} cannot be read: {what}") from error


def _kind_of(connection: sqlite3.Connection, file: Path) -> str:
    """Returns which file of a store it is, by what it says of itself."""
    found_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    kind = next((name for name, one in FORMATS.items() if one.application_id == found_id), None)
    if kind is None:
        message = f"{file} is a database of something else (application id {found_id:#x})"
        raise CannotRead(Why.FOREIGN, message)
    ours = FORMATS[kind].version
    if version == ours:
        return kind
    is_newer = version > ours
    raise CannotRead(
        Why.OTHER_FORMAT,
        f"{file.name} has format {version}; this version reads format {ours}",
        "Use the version of jobline-server that wrote it, or a newer one."
        if is_newer
        else "Use the version that wrote it; a start of this version's server brings it on.",
    )


def check_regular(path: Path) -> None:
    """Refuses what is no file, or none that is there to be read: who opens a pipe would wait for
    ever. Raises `CannotRead`.
    """
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return
    except OSError as error:
        raise _unreadable(path, error) from error
    what = "a directory" if path.is_dir() else "no regular file"
    raise CannotRead(Why.DAMAGED, f"{path} is damaged: it is {what}")


def content_of(path: Path) -> bytes:
    """Returns what is in a small file. Raises `CannotRead`."""
    check_regular(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _is_database(path: Path) -> bool:
    """Returns whether a file begins like a database. Raises `CannotRead` if it cannot be read."""
    return _start_of(path) == _MAGIC


def _start_of(path: Path) -> bytes:
    check_regular(path)
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> CannotRead:
    why = os.strerror(error.errno or 0).lower()
    return CannotRead(Why.UNREADABLE, f"{path} cannot be read: {why}")
