"""The spool: finished files on the disk of the server, until the destination has them.

    <data>/history/spool/events/date=…/hour=…/<shard>-<first>-<last>.parquet
    <data>/history/exported.json      shard → journal offset up to which all is, or was, in files

A file is written under a temporary name, fsynced and renamed, and only then is `exported.json`: so
a crash between the two makes some events again, in a file of another name. With both, the journal
may forget these events.

The spool has a bound. At the bound, and when the disk is full, the oldest files go, and are
counted: the queue needs the room more than its history does. Threads may share a spool.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobline_server.history.files import Encoded  # which takes as long to load as all the rest

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Spool:
    """The spool below a directory, which is made. `lost_files` and `lost_bytes` count what had to
    go before the destination had it.
    """

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self._spool = directory / "spool"
        self._state = directory / "exported.json"
        self._bytes_max = bytes_max
        self._spool.mkdir(parents=True, exist_ok=True)
        for left in self._spool.rglob(".*.tmp"):
            left.unlink()
        sizes = [(str(path.relative_to(self._spool)), path.stat()) for path in self._files()]
        sizes.sort(key=lambda found: found[1].st_mtime_ns)
        self._sizes = {name: found.st_size for name, found in sizes}
        # The time of the oldest row of each file; of those of an earlier run, when they were made.
        self._times = {name: found.st_mtime_ns // 1_000_000 for name, found in sizes}
        self._lock = threading.Lock()
        self.bytes = sum(self._sizes.values())
        self.lost_files = 0
        self.lost_bytes = 0

    def _files(self) -> Iterator[Path]:
        return self._spool.rglob("*.parquet")

    def exported(self) -> dict[int, int]:
        """Returns the journal offset up to which each shard is exported; none if nothing was."""
        try:
            stored = json.loads(self._state.read_text())
        except FileNotFoundError:
            return {}
        return {int(shard): int(offset) for shard, offset in stored.items()}

    def save_exported(self, offsets: Mapping[int, int]) -> None:
        """Stores these offsets, durably."""
        content = json.dumps({str(shard): offset for shard, offset in sorted(offsets.items())})
        write_durably(self._state, content.encode())

    def put(self, file: Encoded) -> bool:
        """Stores a file, durably; returns whether it could be: without any room it is lost. Raises
        `OSError` if it is not known why it could not; it may be put again.
        """
        while self._bytes_with(file) > self._bytes_max and self._drop_oldest():
            pass
        while True:
            try:
                write_durably(self._spool / file.path, file.content)
            except OSError as error:
                if not is_full(error):
                    raise
                if not self._drop_oldest():
                    self.count_lost(file)
                    return False
            else:
                with self._lock:
                    self.bytes = self._bytes_with(file)
                    self._sizes[file.path] = len(file.content)
                    self._times[file.path] = file.oldest_ms
                return True

    def _bytes_with(self, file: Encoded) -> int:
        """Returns the bytes of the spool with a file, which may replace one."""
        return self.bytes + len(file.content) - self._sizes.get(file.path, 0)

    def count_lost(self, file: Encoded) -> None:
        """Counts a file that is not put again as lost."""
        self.lost_files += 1
        self.lost_bytes += len(file.content)

    def oldest(self) -> tuple[str, Path] | None:
        """Returns the oldest file, by its path below the history and on the disk; None without."""
        with self._lock:
            name = next(iter(self._sizes), None)
        return None if name is None else (name, self._spool / name)

    def oldest_ms(self) -> list[int]:
        """Returns the time of the oldest row of each file."""
        with self._lock:
            return list(self._times.values())

    def remove(self, name: str) -> None:
        """Deletes a file that the destination has, unless it had to go meanwhile."""
        self._forget(name)
        self._unlink(name)

    def lose(self, name: str) -> bool:
        """Deletes a file that the destination does not have, and counts it as lost; returns whether
        it was there, or should have been.
        """
        size = self._forget(name)
        if size is None:
            return False
        self.lost_files += 1
        self.lost_bytes += size
        self._unlink(name)
        return True

    def _forget(self, name: str) -> int | None:
        """Returns the size that a file had; None if there was none."""
        with self._lock:
            size = self._sizes.pop(name, None)
            self._times.pop(name, None)
            self.bytes -= size or 0
        return size

    def __len__(self) -> int:
        return len(self._sizes)

    def _drop_oldest(self) -> bool:
        found = self.oldest()
        if found is None:
            return False
        self.lose(found[0])
        return True

    def _unlink(self, name: str) -> None:
        path = self._spool / name
        path.unlink(missing_ok=True)
        for folder in (path.parent, path.parent.parent):
            try:
                folder.rmdir()
            except OSError:
                return


def is_full(error: OSError) -> bool:
    """Returns whether a write failed for want of room."""
    return error.errno in _FULL


def write_durably(path: Path, content: object) -> None:
    """Writes a file under a temporary name, fsyncs it, renames it, and fsyncs its directories."""
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)  # type: ignore[arg-type]  # a buffer of Arrow is one of bytes
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    for folder in {path.parent, *(folder.parent for folder in made)}:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
