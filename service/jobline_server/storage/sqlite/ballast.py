"""The ballast: a file without content that is freed when the disk is full, so that acks go on.

It has two parts. The first part is for any commit that finds the disk full. The last is kept for
writes that make room: deletes, retention, returning free pages to the file system. So a disk that
is full of the server's own jobs can always be emptied. Both are freed in steps, as others that
write to the disk may take what is free.
"""

from __future__ import annotations

import os
from pathlib import Path

from jobline_server.storage.sqlite.files import free_bytes, sync_directory

# The last part is this share of the whole.
LAST_PART = 4
# This much must be free beside it, whatever the settings say: a disk that was full has room again
# only when more than a few commits fit.
SPARE_BYTES_MIN = 1 << 20
# It is freed in so many steps, none smaller than this.
_STEPS = 16
_STEP_BYTES_MIN = 1 << 20
# A write-ahead log may grow to this share of the last part before it is moved to its database. So
# the last part has room for what a database grows by then, and for a large commit: moving the log
# makes more room than it takes.
_WAL_PART = 2
_WAL_BYTES_MIN = 1 << 19
_BLOCK = 512


def wal_bytes_max(ballast_bytes: int) -> int:
    """Returns the size from which a write-ahead log is moved, if there is such a ballast."""
    return max(ballast_bytes // LAST_PART // _WAL_PART, _WAL_BYTES_MIN)


class Ballast:
    """A preallocated file: whole, or its last part, or empty. All calls come from one thread."""

    def __init__(self, file: Path, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._last_bytes = size_bytes // LAST_PART
        self._held_bytes = 0
        self.standing = False

    @property
    def held_bytes(self) -> int:
        """Returns how much of it is left."""
        return self._held_bytes

    def find(self) -> None:
        """Finds what an earlier process left of the file: a start on a full disk may need it
        first."""
        self._held_bytes = self._allocated_bytes()
        self.standing = self._held_bytes == self._size_bytes and self._file.exists()

    def stand(self, spare_bytes: int) -> bool:
        """Makes the file whole if `spare_bytes` stay free beside it, and returns whether it is.
        With less room, makes its last part.

        Checks the room first, so that it never fills a disk itself.
        """
        if self.standing and self._size_bytes:
            return True
        spare_bytes = max(spare_bytes, SPARE_BYTES_MIN, 2 * wal_bytes_max(self._size_bytes))
        room = free_bytes(self._file.parent) + self._held_bytes
        self.standing = room >= self._size_bytes + spare_bytes and self._hold(self._size_bytes)
        if not self.standing and room >= self._last_bytes + SPARE_BYTES_MIN:
            self._hold(max(self._held_bytes, self._last_bytes))
        return self.standing

    def withhold(self) -> None:
        """Says that the disk is full before a write has found it so. The file stays as it is."""
        self.standing = False

    def give_up(self, *, last: bool) -> bool:
        """Frees a step of its first part, or, if that is gone, of the `last`; returns False if
        there was nothing to free."""
        self.standing = False
        kept = self._last_bytes if self._held_bytes > self._last_bytes or not last else 0
        if self._held_bytes <= kept:
            return False
        step = max(self._size_bytes // _STEPS, _STEP_BYTES_MIN)
        self._hold(max(self._held_bytes - step, kept))
        return True

    def _allocated_bytes(self) -> int:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return 0
        # A sparse file of the right length reserves nothing.
        return min(found.st_size, found.st_blocks * _BLOCK)

    def _hold(self, size_bytes: int) -> bool:
        """Allocates the file with this size; returns False, with nothing allocated, on failure."""
        if size_bytes == self._held_bytes and self._file.exists():
            return True
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, size_bytes)
            if size_bytes:
                os.posix_fallocate(descriptor, 0, size_bytes)
            # Freed blocks of ext4 can be used once its own journal has committed; this makes it.
            os.fsync(descriptor)
        except OSError:
            self._held_bytes = 0
            self._file.unlink(missing_ok=True)
            return False
        finally:
            os.close(descriptor)
            sync_directory(self._file.parent)
        self._held_bytes = size_bytes
        return True
