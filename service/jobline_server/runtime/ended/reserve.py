"""Writes to the ended store on a full disk: what may take the reserve, and what waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from jobline_server.storage.ended_store import EndedJobStore, EndedOp
from jobline_server.storage.space import Space
from jobline_server.storage.store import DiskFull

# A write on a full disk must leave this much.
SPARE_BYTES = 1 << 16


async def finds_room(space: Space, store: EndedJobStore, size_bytes: int) -> bool:
    """Returns whether there is room for rows. The reserve is no part of it: that is for acks and
    deletes. But where what was deleted left room in the file, the reserve may be taken for the way
    through the log, which gives it back.
    """
    growth = await store.growth(size_bytes)
    # In the log a row takes pages of indexes as well.
    needed = size_bytes + size_bytes // 2 + growth + SPARE_BYTES
    while (free := space.free_bytes()) is not None and free < needed:
        may_have = not growth and free + space.held_bytes() >= needed
        if not (may_have and await space.give_up_ballast(last=True)):
            return False
    return True


async def change(store: EndedJobStore, space: Space, changes: Sequence[EndedOp]) -> None:
    """Writes changes of ended jobs with all of the reserve if needed, and then fewer at a time:
    deletes make room. Raises `DiskFull` if one alone finds none.
    """
    try:
        await with_reserve(space, partial(store.write, changes))
    except DiskFull:
        if len(changes) <= 1:
            raise
        half = len(changes) // 2
        await change(store, space, changes[:half])
        await change(store, space, changes[half:])


async def with_reserve(space: Space, write: Callable[[], Awaitable[None]]) -> None:
    """Makes a write that makes room, with as much of the reserve as it needs."""
    while True:
        try:
            await write()
        except DiskFull:
            if not await space.give_up_ballast(last=True):
                raise
        else:
            return
