"""Files beside the databases: the lock, durable names, and free space."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from shutil import copyfile

from jobline_server.storage.store import StoreRefused

_HOLDER_BYTES = 20


def sync_directory(directory: Path) -> None:
    """Makes the names in a directory durable: fsync of a file does not cover its name
    (fsync(2))."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(file: Path) -> None:
    """Makes the contents of a file durable that others wrote."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Makes a directory with its parents, durably, readable only by its owner: payloads are
    private. Raises `StoreRefused`."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise StoreRefused(f"{directory} cannot be made a directory: {why}") from error
    sync_directory(directory.parent)


def free_bytes(directory: Path) -> int:
    """Returns the free bytes of the file system that an ordinary process may use."""
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize


def keep_copy(file: Path, suffix: str) -> Path | None:
    """Keeps a file as evidence under another name, the first time only. SQLite deletes the WAL when
    it closes; a hard link keeps its content at no cost."""
    copy = file.with_name(file.name + suffix)
    if not file.exists() or copy.exists():
        return None
    try:
        os.link(file, copy)
    except OSError:
        copyfile(file, copy)
    return copy


class DirectoryLock:
    """A lock that the one process that has the directory open holds.

    SQLite locks its files too, but with POSIX record locks, which a process loses as soon as any of
    its code opens and closes the same file. A flock on a file of its own is held until the process
    ends.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor: int | None = None

    def take(self) -> None:
        """Takes the lock, or raises `StoreRefused` with the process that holds it."""
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, _HOLDER_BYTES, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise StoreRefused(
                f"{self._file.parent} is in use by process {holder or '(unknown)'}; "
                "a data directory serves one process"
            ) from None
        with suppress(
            OSError
        ):  # our number is a courtesy: a full disk must not keep us from starting
            os.pwrite(descriptor, b"%-*d" % (_HOLDER_BYTES, os.getpid()), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock; may be called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
