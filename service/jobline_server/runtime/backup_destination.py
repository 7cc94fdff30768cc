"""What backups have to do with their destination, by way of another process: what that does, how
long it may take, and what is deleted of backups that were cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobline_server.runtime.backup_folders import remove_empty, take_unfinished
from jobline_server.telemetry.log import logger

LOG = logger("backup")

# How long a destination may take to say what is there; one that hangs might never.
ASK_SECONDS = 60.0
# How long a stop waits until what was sent is gone; else the next start has it deleted.
LEAVE_SECONDS = 5.0
# The step from which on there may be something at the destination (`offline/backups/finishing`).
SENDING = "sending"


@dataclass(frozen=True, slots=True)
class CopyToFinish:
    """A copy in `folder`, of the state of `at_ms`, that is to become a backup. `unfinished` names
    earlier ones that were cut off.
    """

    folder: Path
    name: str
    at_ms: int
    store: str
    unfinished: tuple[str, ...]


Step = Callable[[str, int, int], None]
TakeAway = Callable[[Path, tuple[str, ...]], Awaitable[int]]


class BackupFailed(Exception):
    """A backup could not be made; the message says why, without credentials."""


@dataclass(frozen=True, slots=True)
class Finisher:
    """What another process does. `finish` returns the bytes of the backup once it is whole;
    `newest_ms` the time of the newest one of a store, 0 for none: of those with a name up to the
    second argument, if there is one; `take_away` deletes what was sent of backups that have a
    folder here, unless they are whole, then these folders, and returns how many. All raise
    `BackupFailed`.
    """

    finish: Callable[[CopyToFinish, Step], Awaitable[int]]
    newest_ms: Callable[[str, str], Awaitable[int]]
    take_away: TakeAway


class Patience:
    """Waits for the destination, up to `ASK_SECONDS` and no longer than until a stop."""

    def __init__(self, to: str) -> None:
        self._to = to
        self._asked: set[asyncio.Future[int]] = set()
        self.is_over = False

    async def wait_for(self, answer: Awaitable[int]) -> int:
        """Returns the answer. Raises `BackupFailed`, also if there is none in time."""
        asked = asyncio.ensure_future(answer)
        if not self.is_over:
            self._asked.add(asked)
            await asyncio.wait([asked], timeout=ASK_SECONDS)
            self._asked.discard(asked)
        if not asked.done():
            asked.cancel()
            await asyncio.wait([asked])
        if asked.cancelled():
            raise BackupFailed(f"{self._to} did not answer, for {ASK_SECONDS:g} s or until a stop")
        return asked.result()

    def end(self) -> None:
        """Ends all waiting."""
        self.is_over = True
        for asked in self._asked:
            asked.cancel()


class Leftovers:
    """Deletes what is left of backups that were cut off. Their copies are in `folder`, which no
    other server has; what was sent is found by the name of its folder there. So nothing is deleted
    at the destination but what this data directory has begun and did not finish, whoever else has
    backups there. `lock` is held by the one who has to do with the folder.
    """

    def __init__(
        self, folder: Path, to: str, take_away: TakeAway, patience: Patience, *, is_near: bool
    ) -> None:
        self._folder = folder
        self._to = to
        self._take_away = take_away
        self._patience = patience
        self._is_near = is_near
        self.lock = asyncio.Lock()

    async def delete_copies(self) -> None:
        """Deletes the copies: they take the room of the store. A backup under way has done so."""
        if not self.lock.locked():
            async with self.lock:
                await asyncio.to_thread(take_unfinished, self._folder)

    async def delete_sent(self) -> None:
        """Deletes what was sent, too. If that fails, the next backup tries it again first."""
        if self.lock.locked():
            return
        async with self.lock:
            names = await asyncio.to_thread(take_unfinished, self._folder)
            if not names or self._patience.is_over:
                return
            try:
                await self._patience.wait_for(self._take_away(self._folder, names))
            except BackupFailed as error:
                LOG.warning("half a backup stays for now", names=names, to=self._to, why=str(error))
                return
            await asyncio.to_thread(remove_empty, self._folder)
        LOG.info("half a backup was deleted", names=names, to=self._to)

    async def leave(self) -> None:
        """Deletes both at a stop, which waits for no destination but a directory, and for that some
        seconds: the next start has the rest deleted.
        """
        async with self.lock:
            names = await asyncio.to_thread(take_unfinished, self._folder)
            if not names or not self._is_near:
                return
            with suppress(BackupFailed, OSError):  # also where it takes too long
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._take_away(self._folder, names)
                await asyncio.to_thread(remove_empty, self._folder)
