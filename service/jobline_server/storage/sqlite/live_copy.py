"""A copy of a database that is in use, made by SQLite's backup in steps on the database's thread.

Between two steps the thread does whatever else it is asked for: commits, reads, checkpoints of the
WAL. As the backup belongs to the same connection, SQLite writes each page that changes behind the
backup to the copy as well, and never begins again because of it
(https://sqlite.org/c3ref/backup_finish.html). So the copy is the database as it is at the last
step, whole transactions only, however long it took: it *follows* until then. The other ways were
worse. A copy of the file needs the WAL to stand still, which grows meanwhile and is then moved at
once, for seconds; `VACUUM INTO` is one long statement; and a second connection is locked out, for
good reasons (see `pragmas.sql`).

The copy has no journal and is not fsynced, as an unfinished one is of no use to anybody, and an
fsync here would hold up commits. Whoever wants it durable fsyncs it afterwards.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from jobline_server.storage.copies import CopyFailed

T = TypeVar("T")

# Pages of a step: half a mebibyte, which takes about a millisecond of the thread.
STEP_PAGES = 64

_Work = Callable[[], None]


class _Abandoned(Exception):
    """Ends the backup from within."""


class LiveCopy:
    """One copy, into a file that does not exist yet. `step` until it returns 0, or `abandon`.

    `on_thread` runs a function on the database's thread; while it runs this copy's, work for that
    thread must come through `run`. `forget` is called, in the loop, when that is over.
    """

    def __init__(self, file: Path, forget: Callable[[], None]) -> None:
        self._file = file
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._stepped: asyncio.Future[int] = self._loop.create_future()
        """Replaced by each step."""
        self._goes_on = False
        self._is_abandoned = False
        self.pages = 0
        """Of the database, as of the last step; 0 before."""

    def start(self, hop: Awaitable[None]) -> None:
        """Begins; `hop` is `make` on its way to the thread."""
        self._hop = asyncio.ensure_future(hop)

    async def step(self) -> int:
        """Copies some pages; returns how many are left, 0 when the copy is complete. Raises
        `CopyFailed`, also if it was complete, failed or given up before.
        """
        if self._hop.done():
            raise CopyFailed("it is over")
        self._stepped = self._loop.create_future()
        self._work.put(self._go_on)
        left = await self._stepped
        if not left:
            await asyncio.wait([self._hop])
        return left

    async def abandon(self) -> None:
        """Ends it, if it has not ended; the file that is left is of no use. May be called twice."""
        self._work.put(self._give_up)
        await asyncio.wait([self._hop])
        if self._stepped.done() and not self._stepped.cancelled():
            self._stepped.exception()  # read, so that nobody is told of it

    async def run(self, work: Callable[[], T]) -> T:
        """Runs work on the thread, after all that came before it."""
        done: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                outcome = work()
            except BaseException as error:  # noqa: BLE001  # raised where it is awaited
                self._tell(_fail, done, error)
            else:
                self._tell(_settle, done, outcome)

        self._work.put(run)
        return await done

    def make(self, raw: sqlite3.Connection) -> None:
        """Makes the copy, on the thread. Returns when no more work can come through `run`."""
        try:
            self._copy(raw)
        except _Abandoned:
            self._tell(_fail, self._stepped, CopyFailed("it was given up"))
        except (sqlite3.Error, OSError) as error:
            self._tell(_fail, self._stepped, CopyFailed(f"{self._file.name}: {error}"))
        finally:
            self._tell(self._end)
            with suppress(RuntimeError):
                while (work := self._work.get()) is not None:
                    work()

    def _copy(self, raw: sqlite3.Connection) -> None:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as target:
            target.execute("PRAGMA journal_mode = OFF")
            target.execute("PRAGMA synchronous = OFF")
            # Nothing is copied before it is asked for: a small database may be one step.
            self._work_until_step()
            # sleep: before a busy database is tried again, which there is none of.
            raw.backup(target, pages=STEP_PAGES, progress=self._after_step, sleep=0.001)
        self._tell(_settle, self._stepped, 0)

    def _after_step(self, status: int, left: int, pages: int) -> None:
        """Called by SQLite's backup after each step."""
        self.pages = pages
        if status == sqlite3.SQLITE_DONE:
            return
        # A page that changes while the last ones are copied may be left over.
        self._tell(_settle, self._stepped, max(left, 1))
        self._work_until_step()

    def _work_until_step(self) -> None:
        self._goes_on = False
        while not self._goes_on:
            work = self._work.get()
            if work is not None:
                work()
            if self._is_abandoned:
                raise _Abandoned

    def _go_on(self) -> None:
        self._goes_on = True

    def _give_up(self) -> None:
        self._is_abandoned = True

    def _end(self) -> None:
        """In the loop: from now on work goes to the thread directly, behind this copy's."""
        self._forget()
        self._work.put(None)

    def _tell(self, call: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(call, *arguments)


def _settle(future: asyncio.Future[T], outcome: T) -> None:
    if not future.done():
        future.set_result(outcome)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
