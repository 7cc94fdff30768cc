"""The ballast: a file of no content that is given up when the disk is full, so that acks can go on.

It has two parts. The first goes to whatever finds the disk full; the last is kept for what makes
room again: deletes, retention, giving free pages back to the file system. So a disk that the
server's own jobs have filled can always be emptied.
"""

from __future__ import annotations

import os
from pathlib import Path

from jobline_server.storage.sqlite.files import free_bytes, sync_directory

# The last part is this share of the whole.
LAST_PART = 4
# So much must be free beside it, however little is called low: a disk that has just become full has
# room again only when more than a few commits fit.
SPARE_BYTES_MIN = 1 << 20
_BLOCK = 512


class Ballast:
    """A preallocated file: it stands whole, or its last part is left, or nothing. All calls come
    from one thread."""

    def __init__(self, file: Path, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._last_bytes = size_bytes // LAST_PART
        self._held_bytes = 0
        self.standing = False

    def find(self) -> None:
        """Takes what an earlier process left of it: a start on a full disk may need that before
        anything else."""
        self._held_bytes = self._allocated_bytes()
        self.standing = self._held_bytes == self._size_bytes and self._file.exists()

    def stand(self, spare_bytes: int) -> bool:
        """Sets the file up if `spare_bytes` stay free beside it; returns whether it stands. Where
        there is less room, its last part is.

        The spare room is checked first, so that a disk which is only just full is not filled by us.
        """
        if self._size_bytes and self._held_bytes == self._size_bytes:
            self.standing = True
            return True
        spare_bytes = max(spare_bytes, SPARE_BYTES_MIN)
        room = free_bytes(self._file.parent) + self._held_bytes
        self.standing = room >= self._size_bytes + spare_bytes and self._hold(self._size_bytes)
        if not self.standing and room >= self._last_bytes + SPARE_BYTES_MIN:
            self._hold(max(self._held_bytes, self._last_bytes))
        return self.standing

    def give_up(self, *, last: bool) -> bool:
        """Frees the room of its first part at once, or of all; False if there was none to free."""
        self.standing = False
        rest = 0 if last else self._last_bytes
        if self._held_bytes <= rest:
            return False
        self._hold(rest)
        return True

    def _allocated_bytes(self) -> int:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return 0
        # A sparse file of the right length reserves nothing.
        return min(found.st_size, found.st_blocks * _BLOCK)

    def _hold(self, size_bytes: int) -> bool:
        """Makes the file this large, its room really its own; False, and nothing held, if that
        cannot be."""
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
