"""Ended jobs: what the finished file keeps, and the way there.

Endings of committed turns gather on the shelf and are written a few times a second, without fsync:
the journal still holds them until a checkpoint, which calls `sync` first. Whoever reads has the
shelf written before, so nothing that ended is ever overlooked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from jobline_server.storage.finished import EndedQuery, EndedRow, Finished
from jobline_server.storage.shelf import Shelf

from jobline_server.engine.entries import JobRecord
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits import Turn
from jobline_server.storage.codec import record_of

WRITE_SECONDS = 0.25

Trimmed = Callable[[str, JobState, list[tuple[int, int]]], None]


class EndedJobs:
    """The finished file and its shelf. `trimmed` is told of completed jobs that were never
    written, because the queue keeps fewer: (queue, state, runs of ids).
    """

    def __init__(self, finished: Finished, shelf: Shelf, trimmed: Trimmed) -> None:
        self.finished = finished
        self._shelf = shelf
        self._trimmed = trimmed
        self._writing = asyncio.Lock()

    def told(self, turns: Sequence[Turn]) -> None:
        """Takes what ended onto the shelf."""
        for turn in turns:
            if turn.endings:
                self._shelf.add(turn.endings)

    async def write(self) -> None:
        """Writes what is on the shelf."""
        async with self._writing:
            ops, trimmed = self._shelf.take()
            if ops:
                await self.finished.write(ops)
        for queue, state, runs in trimmed:
            self._trimmed(queue, state, runs)

    async def sync(self) -> None:
        """Makes everything that has ended so far durable in the finished file."""
        await self.write()
        await self.finished.sync()

    async def run(self) -> None:
        """Writes a few times a second, until cancelled."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()

    async def find(self, job_id: int) -> tuple[JobState, JobRecord] | None:
        """How a job ended, if it is kept."""
        row = await self.row_of(job_id)
        return None if row is None else (JobState(row.state), record_of(row, job_id))

    async def row_of(self, job_id: int) -> EndedRow | None:
        """The row that holds a job that ended."""
        await self.write()
        return await self.finished.get(job_id)

    async def list(self, query: EndedQuery) -> list[EndedRow]:
        """Rows by id."""
        await self.write()
        return list(await self.finished.list(query))
