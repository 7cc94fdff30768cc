"""The interface of copies of a store that is in use.

A copy *follows* the store: what is committed while it is made is in it, too, until it is finished.
A copy of all files is finished within one moment in which nothing is committed and no checkpoint
ends. So it is a state that a crash at that moment could have left: every shard at the offset of its
last commit, with the messages between shards as they stood, and ended jobs that are missing in
their own store still in the journal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class CopyFailed(Exception):
    """The copy cannot be made, and is of no use; nothing happened to the store."""


class StoreCopy(Protocol):
    """A copy of all files of a store, into a directory."""

    @property
    def total_bytes(self) -> int:
        """Returns the bytes of all of it, about: stores grow meanwhile."""

    async def step(self) -> int:
        """Copies a piece, of about half a mebibyte; returns the bytes that are left. Once these are
        few, further steps copy nothing: the copy follows until it is finished. Raises `CopyFailed`.
        """

    def is_close(self) -> bool:
        """Returns whether so little is left that `finish` takes some milliseconds."""

    async def finish(self) -> None:
        """Copies the rest. Call it while nothing is committed. Raises `CopyFailed`."""

    async def abandon(self) -> None:
        """Gives up a copy that is not finished; may be called at any time, and twice."""

    async def make_durable(self) -> None:
        """Fsyncs what was copied so far, beside all else. Raises `CopyFailed`."""


class StoreCopies(Protocol):
    """Makes copies of an open store, one at a time."""

    async def identity(self) -> int:
        """Returns the number by which the store differs from all others."""

    def free_bytes(self) -> int:
        """Returns the free bytes of the disk on which the store is."""

    async def begin(self, directory: Path) -> StoreCopy:
        """Begins a copy into an empty directory. Raises `CopyFailed`."""
