"""The interface of the room on a store's disk: a reserve for a full disk, and what files give back.

It is not part of `Store`: a directory of files has such an object, a database elsewhere has none.
The runtime is then given `NO_SPACE`, which has no reserve and is never short of room.
"""

from __future__ import annotations

from typing import Protocol


class Space(Protocol):
    """The room that the files of a store share."""

    def free_bytes(self) -> int | None:
        """Returns the free bytes of the file system, in one system call; None if unknown."""

    def ballast_stands(self) -> bool:
        """Returns whether the reserve for acks is whole; without a system call."""

    def held_bytes(self) -> int:
        """Returns how much of the reserve is left; without a system call."""

    async def give_up_ballast(self, *, last: bool) -> bool:
        """Frees a step of the first part of the reserve, or with `last`, when that is gone, of the
        rest, which is for writes that make room. Returns whether that freed anything: then the same
        write may be retried at once.
        """

    async def restore_ballast(self) -> bool:
        """Sets up the reserve again if there is room for it and more; returns whether it stands."""

    async def shrink(self) -> int:
        """Returns a slice of the free pages of each file to the file system. Returns the bytes, 0
        when there are no more. Raises `DiskFull` or `CommitUnknown`.
        """


class NoSpace:
    """Implements `Space` for a store that does not report its room: there is nothing to free."""

    def free_bytes(self) -> int | None:
        """Returns None."""
        return None

    def ballast_stands(self) -> bool:
        """Returns True: no write has taken the reserve."""
        return True

    def held_bytes(self) -> int:
        """Returns 0."""
        return 0

    async def give_up_ballast(self, *, last: bool) -> bool:
        """Returns False."""
        return False

    async def restore_ballast(self) -> bool:
        """Returns True."""
        return True

    async def shrink(self) -> int:
        """Returns 0."""
        return 0


NO_SPACE = NoSpace()
