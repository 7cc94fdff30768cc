"""The ballast: a file of no content that is given up when the disk is full, so that acks can go
on."""

from __future__ import annotations

import os
from pathlib import Path

from jobline_server.storage.sqlite.files import free_bytes, sync_directory


class Ballast:
    """A preallocated file. It stands, or it was given up, or there was no room for it."""

    def __init__(self, file: Path, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self.standing = False

    def stand(self, spare_bytes: int) -> bool:
        """Sets the file up if `spare_bytes` stay free beside it; returns whether it stands.

        The spare room is checked first, so that a disk which is only just full is not filled by us.
        """
        if self._holds_its_size():
            self.standing = True
        elif free_bytes(self._file.parent) >= self._size_bytes + spare_bytes:
            self.standing = self._allocate()
        else:
            self._remove()
        return self.standing

    def give_up(self) -> bool:
        """Frees its room at once; False if it did not stand."""
        if not self.standing:
            return False
        self.standing = False
        self._remove()
        return True

    def _holds_its_size(self) -> bool:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return False
        # Blocks of 512 bytes: a sparse file of the right length reserves nothing.
        return found.st_size == self._size_bytes and found.st_blocks * 512 >= self._size_bytes

    def _allocate(self) -> bool:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self._size_bytes:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            os.fsync(descriptor)
        except OSError:
            self._remove()
            return False
        finally:
            os.close(descriptor)
        sync_directory(self._file.parent)
        return True

    def _remove(self) -> None:
        self._file.unlink(missing_ok=True)
        # Freed blocks of ext4 can be used once its own journal has committed; this makes it.
        sync_directory(self._file.parent)
