"""Backups of a server that serves: one at a time, of all shards at one moment.

1. Both files of the store are copied into `backup/` of the data directory, in pieces between
   commits, which have most of the store's time. The copies follow what is committed meanwhile.
2. When little is left, commits wait for some milliseconds while the rest is copied. So all shards
   are copied at the offset of their last commit, and no message between two of them is lost or
   there twice: what a crash at that moment would have left.
3. Another process checks the copy, sends it, writes the manifest last, and deletes old backups:
   Python's lock and the loop have no part in that.

A backup that fails, or is cut off, is none: it has no manifest. What is left of it is taken away by
the next one, at a stop, or soon after the next start. Its copy is in `backup/`, which no other
server has; what was sent is found by the name of its folder there. So nothing is deleted at the
destination but what this data directory began and nobody finished, whoever else has backups there.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.backup_copy import CopyMaker
from jobline_server.runtime.backup_destination import (
    SENDING,
    BackupFailed,
    CopyToFinish,
    Finisher,
    Leftovers,
    Patience,
)
from jobline_server.runtime.backup_folders import (
    empty,
    name_of,
    remove_empty,
    take_unfinished,
)
from jobline_server.runtime.core import Core
from jobline_server.storage.copies import StoreCopies
from jobline_server.telemetry.log import logger

LOG = logger("backup")


class BackupState(Enum):
    """What becomes of a backup."""

    NONE = 0
    RUNNING = 1
    WHOLE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class BackupView:
    """The newest backup since the start. `step`: what is done just now, in words; `done` and
    `total` are of that step. `why` one failed; of one that is RUNNING, why the last one before it
    did. Times are wall time, 0 for none.
    """

    state: BackupState = BackupState.NONE
    name: str = ""
    step: str = ""
    done: int = 0
    total: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    at_ms: int = 0
    stored_bytes: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class BackupSettings:
    """`folder`: where copies are made. `to`: what the destination is called, without credentials.
    `spare_bytes`: stay free on the disk of the store. `is_near`: it is a directory.
    """

    folder: Path
    to: str
    spare_bytes: int
    is_near: bool = False


class Backups:
    """Makes backups. The counts are for metrics: `last_success_ms` is None until it is known."""

    def __init__(
        self, core: Core, copies: StoreCopies, settings: BackupSettings, finisher: Finisher
    ) -> None:
        self._core = core
        self._copies = copies
        self._copy = CopyMaker(core, copies, settings.spare_bytes, self._note_copied)
        self._settings = settings
        self._finisher = finisher
        self._task: asyncio.Task[None] | None = None
        self._patience = Patience(settings.to)
        self._leftovers = Leftovers(
            settings.folder,
            settings.to,
            finisher.take_away,
            self._patience,
            is_near=settings.is_near,
        )
        self._stops = False
        self.view = BackupView()
        self.failures = 0
        self.last_success_ms: int | None = None
        self.last_seconds = 0.0

    @property
    def is_stopping(self) -> bool:
        """Returns whether no more backups are made."""
        return self._stops

    @property
    def to(self) -> str:
        """Returns what the destination is called, without credentials."""
        return self._settings.to

    def begin(self) -> BackupView:
        """Begins a backup, which goes on by itself. Raises `Refused`."""
        if self._stops:
            raise Refused(RefusalKind.DRAINING, "the server is stopping")
        if self._task is not None and not self._task.done():
            raise Refused(RefusalKind.BACKUP_RUNNING, f"a backup is being made, {self.view.name}")
        last = self.view
        self.view = BackupView(
            BackupState.RUNNING,
            step="copying",
            started_ms=self._now_ms(),
            why=last.why if last.state is BackupState.FAILED else "",
        )
        self._task = asyncio.create_task(self._make())
        return self.view

    async def wait(self) -> BackupView:
        """Waits for the end of the backup under way, if there is one, and returns the last one."""
        if self._task is not None:
            await asyncio.wait([self._task])
        return self.view

    async def find_newest(self) -> int:
        """Returns when the newest backup at the destination was made, 0 if there is none. Raises
        `BackupFailed`, which counts as a backup that failed: none could be made there either.
        """
        if self.last_success_ms is None:
            await self._leftovers.delete_copies()
            try:
                store = await self._store()
                until_name = name_of(self._now_ms(), store)
                found = await self._patience.wait_for(self._finisher.newest_ms(store, until_name))
            except BackupFailed as error:
                self._note_not_asked(str(error))
                raise
            self._note_found(found)
            await self._leftovers.delete_sent()
        return self.last_success_ms or 0

    def _note_not_asked(self, why: str) -> None:
        if self._stops:
            return
        self.failures += 1
        if self.view.state is not BackupState.RUNNING:
            now_ms = self._now_ms()
            self.view = BackupView(BackupState.FAILED, why=why, started_ms=now_ms, ended_ms=now_ms)
        LOG.error("no backup can be made", to=self._settings.to, why=why)

    async def stop(self) -> None:
        """Gives up the backup under way, and waits for no answer of the destination, but some
        seconds until a directory has lost what was sent of it.
        """
        self._stops = True
        self._patience.end()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
            if self.view.state is BackupState.RUNNING:  # it had not run yet
                self._give_up()
            await self._leftovers.leave()

    async def _make(self) -> None:
        began = time.monotonic()
        try:
            size = await self._backup()
        except asyncio.CancelledError:
            self._give_up()
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, the queue goes on without it
            self._fail(str(error) or type(error).__name__)
        else:
            self.last_seconds = time.monotonic() - began
            # Also where it is less: the clock was set back, and this is the newest all the same.
            self.last_success_ms = self.view.at_ms
            self._change(state=BackupState.WHOLE, step="", why="", stored_bytes=size, ended=True)
            seconds = round(self.last_seconds, 3)
            LOG.info(
                "backup made", name=self.view.name, to=self._settings.to, bytes=size, s=seconds
            )

    def _fail(self, why: str) -> None:
        self.failures += 1
        self._change(state=BackupState.FAILED, step="", why=why, ended=True)
        LOG.error("backup failed", name=self.view.name, to=self._settings.to, why=why)

    def _give_up(self) -> None:
        """Ends the backup under way, as the server stops: that is no failure."""
        self._change(state=BackupState.FAILED, step="", why="the server stopped", ended=True)
        LOG.info("backup given up, as the server stops", name=self.view.name, to=self._settings.to)

    async def _backup(self) -> int:
        store = await self._store()
        async with self._leftovers.lock:
            return await self._make_one(store)

    async def _make_one(self, store: str) -> int:
        unfinished = await asyncio.to_thread(take_unfinished, self._settings.folder)
        at_ms = self.view.started_ms
        while (name := name_of(at_ms, store)) in unfinished:
            at_ms += 1  # the clock was set back
        self._change(name=name)
        folder = self._settings.folder / name
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True)
        try:
            at_ms = await self._copy.make(folder)
            self._change(at_ms=at_ms)
            copy = CopyToFinish(folder, name, at_ms, store, unfinished)
            size = await self._finisher.finish(copy, self._note_step)
        except asyncio.CancelledError:
            raise  # see `Leftovers.leave`
        except Exception:
            # What was sent is found by the next one, by the name of this folder; the copy itself
            # only takes room.
            await asyncio.to_thread(empty, folder)
            if self.view.step != SENDING:
                await asyncio.to_thread(remove_empty, folder)
            raise
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await asyncio.to_thread(remove_empty, folder.parent)
        return size

    async def _store(self) -> str:
        return f"{await self._copies.identity() & (1 << 64) - 1:016x}"

    def _note_found(self, at_ms: int) -> None:
        # One may have been made while the destination was asked.
        self.last_success_ms = max(at_ms, self.last_success_ms or 0)
        if self.view.state is BackupState.FAILED and not self.view.name:
            self.view = BackupView()  # it could not be asked before

    def _note_copied(self, done: int, total: int) -> None:
        self._change(done=done, total=total)

    def _note_step(self, step: str, done: int, total: int) -> None:
        self._change(step=step, done=done, total=total)

    def _change(self, *, ended: bool = False, **fields: object) -> None:
        if ended:
            fields["ended_ms"] = self._now_ms()
        self.view = replace(self.view, **fields)  # type: ignore[arg-type]  # fields by name

    def _now_ms(self) -> int:
        return self._core.clock.now().wall_ms
