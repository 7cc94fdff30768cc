"""Writes ended jobs to the ended store.

Endings of committed batches collect in the buffer and are written once a second, or less often
while a queue completes more than it keeps, without fsync: the journal has them until a checkpoint,
which calls `sync` first. Before a read the buffer is written, so that no job is missed. Retention
and retries of dead jobs read often while much ends, and can do without the newest: they have only
changes written, so that jobs need not be written that their queue does not keep anyway.

While the disk is full endings and operations of operators wait here, in order, and as many are
written as find room beside the reserve. Changes to jobs that the store has already (deleted,
retried, stale) do not wait: they free room, and no caller may decide on a job that was deleted.
They are written at once, and from then on what waits is only what was put, with what has changed of
it since.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from jobline_server.engine.decide.admin import decide_delete_ended
from jobline_server.engine.endings import Ending
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import waiting_ops
from jobline_server.runtime.ended.reserve import change, finds_room, with_reserve
from jobline_server.runtime.ended.retention_hints import RetentionHints
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.waiting import is_set_by_tick
from jobline_server.storage.ended_buffer import EndedBuffer, Taken
from jobline_server.storage.ended_store import (
    EndedJobStore,
    EndedOp,
    EndedPart,
    EndedQuery,
    EndedRow,
    EndedSpan,
)
from jobline_server.storage.store import DiskFull

# Of the jobs that a queue completes between two writes only those that it keeps are written: at a
# million per second a tenth. With four writes per second a drain takes half as long again.
WRITE_SECONDS = 1.0
# While a queue completes more than it keeps, most of a write would soon be evicted, so it waits.
LATEST_WRITE_SECONDS = 3.0
# Of how many jobs the endings are taken in a step of the loop: 2 to 4 ms.
TAKEN_JOBS = 4_000
# Pieces of the buffer per write: as many operations, and 2 MiB of rows unless one is larger.
WRITE_PIECES = 5


class EndedWriter:
    """The buffer, and operations taken from it that are not written yet."""

    def __init__(self, core: Core, ended_store: EndedJobStore) -> None:
        self._core = core
        self._ended_store = ended_store
        self.hints = RetentionHints()
        self._buffer = EndedBuffer(wanted=core.load.wanted)
        self._pieces: Iterator[Taken] = iter(())
        self._unwritten: list[EndedOp] = []
        # How many of the first of these had their changes written while there was no room for all.
        self._changed = 0
        self.writing = asyncio.Lock()
        """Held while anything is written: then nothing moves into the store."""
        self._stopping = asyncio.Event()
        self._going_on: asyncio.Handle | None = None

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Adds endings to the buffer, behind those that it did not take yet or failed to take."""
        self._add(ending for batch in batches for ending in batch.endings)

    def _add(self, endings: Iterable[Ending]) -> None:
        """Adds endings; many are taken in steps of the loop."""
        try:
            has_more = self._buffer.add(endings, TAKEN_JOBS)
        except Exception as error:
            if self._buffer.is_line_too_long():
                self._core.commits.fail(error)
            raise
        if has_more and self._going_on is None:
            self._going_on = asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._going_on = None
        # What the buffer fails to take stays in line, and fails the next call or write again.
        with suppress(Exception):
            self._add(())

    async def step(self) -> bool:
        """Waits a second, or some while a queue completes more than it keeps, and writes; returns
        whether to continue, which `stop` ends.
        """
        waited = 0.0
        while not await is_set_by_tick(self._stopping, WRITE_SECONDS):
            waited += WRITE_SECONDS
            if not self._buffer.leaves_out or waited >= LATEST_WRITE_SECONDS:
                await self.write()
                break
        return not self._stopping.is_set()

    def stop(self) -> None:
        """Ends the loop after the write in progress."""
        self._stopping.set()

    async def write(self) -> None:
        """Writes what is in the buffer; on a full disk its changes and what finds room, and `find`
        has the rest. A caller that is cancelled stops waiting, but the write goes on.
        """
        await _to_the_end(self._write_what_fits(self._write))

    async def write_changes(self) -> None:
        """Writes what was changed of ended jobs, but not what has ended; otherwise as `write`."""
        await _to_the_end(self._write_what_fits(self._write_changes))

    async def sync(self) -> None:
        """Makes everything that has ended so far durable in the ended store. Raises `DiskFull`."""
        async with self.writing:
            if self._core.commits.disk_full:
                await self._change_at_once()
            await self._write()
        await with_reserve(self._core.space, self._ended_store.sync)

    def find(self, job_ids: Sequence[int]) -> dict[int, EndedRow | None]:
        """Returns those of some jobs, in order of id, that wait for room, with the row that will be
        kept of each, None if none will. Call `write` before, and query the ended store after.
        """
        return waiting_ops.find(self._unwritten, job_ids)

    async def waiting(self, query: EndedQuery) -> list[EndedPart]:
        """Returns the parts that wait for room and pass a filter, by id, up to its limit of jobs.
        Call `write` before; the caller holds `changing`, and `writing`, or some of these may be on
        their way into the store.
        """
        return await waiting_ops.parts(tuple(self._unwritten), query) if self._unwritten else []

    async def waiting_of(self, queue: str, state: JobState) -> list[EndedSpan]:
        """Returns the parts of a queue and state that wait for room, the first to end first. Call
        it as `waiting`.
        """
        query = EndedQuery(queue=queue, states=frozenset({int(state)}), limit=sys.maxsize)
        return sorted(map(waiting_ops.span_of, await self.waiting(query)), key=EndedSpan.key)

    def take_over(self, ops: Sequence[EndedOp]) -> None:
        """Takes what a start found no room for."""
        self._unwritten += ops
        self._changed = len(ops)

    async def _write_what_fits(self, write: Callable[[], Awaitable[None]]) -> None:
        async with self.writing:
            try:
                if not self._core.commits.disk_full:
                    await write()
            except DiskFull:
                self._core.commits.disk_full = True
            if self._core.commits.disk_full:
                with suppress(DiskFull):
                    await self._change_at_once()
                    with self._failing():
                        await self._put()

    async def _write(self) -> None:
        """Tries once to write everything, in pieces of some milliseconds. What an earlier try could
        not write comes first.
        """
        # Raises while the buffer takes no endings: then not all is written.
        self._buffer.add(())
        with self._failing():
            await self._put()
            await self._put_pieces()
            self._pieces = self._buffer.slices()
            await self._put_pieces()

    async def _write_changes(self) -> None:
        """Tries once to write the changes. They may be of jobs that wait for room, which come first
        then.
        """
        if self._unwritten:
            await self._write()
            return
        self._buffer.add(())
        with self._failing():
            self._pieces = self._buffer.changes()
            await self._put_pieces()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Stops the process after any failure but a full disk: what was written is unknown, and
        only a start reads the journal again.
        """
        try:
            yield
        except DiskFull:
            raise
        except Exception as error:
            self._core.commits.fail(error)
            raise

    async def _put_pieces(self) -> None:
        pace = Pace()
        for number, piece in enumerate(self._pieces, 1):
            self._take(piece)
            if number % WRITE_PIECES == 0:
                await self._put()
            await pace.rest()
        await self._put()

    def _take(self, piece: Taken) -> None:
        """Takes a piece of the buffer. Completed jobs beyond what their queue keeps are not
        written: they are deleted by a fact.
        """
        ops, trimmed = piece
        for trim in trimmed:
            slot = self._core.slots.find_by_queue(trim.queue)
            if slot is None:
                continue
            decide_delete_ended(slot.shard, self._core.now(), trim.queue, trim.state, trim.runs)
            self._core.after_decision(slot)
        self._unwritten += ops

    async def _put(self) -> None:
        """Writes what waits, some of it at a time: what is written is not written again."""
        while self._unwritten:
            ops = waiting_ops.first_write(self._unwritten)
            self.hints.note(ops)
            if not self._core.commits.disk_full:
                await self._ended_store.write(ops)
            elif waiting_ops.has_rows(ops):
                ops = await self._what_fits(ops)
                await self._ended_store.write(ops)
            else:
                # What operators did is little, and a checkpoint, which makes room, waits for it.
                await with_reserve(self._core.space, partial(self._ended_store.write, ops))
            del self._unwritten[: len(ops)]
            self._changed = max(self._changed - len(ops), 0)

    async def _what_fits(self, ops: Sequence[EndedOp]) -> Sequence[EndedOp]:
        """Returns as many of the first operations as there is room for, or raises `DiskFull`."""
        while not await finds_room(self._core.space, self._ended_store, waiting_ops.bytes_of(ops)):
            ops = waiting_ops.half(ops)
            if not ops:
                raise DiskFull("what has ended waits for room")
        return ops

    async def _change_at_once(self) -> None:
        """Takes all that is left in the buffer, and writes the changes among it. Changes that find
        no room are retried with all of the reserve, and then fewer at a time: deletes make room.
        """
        self._buffer.add(())
        with self._failing():
            await self._take_all(self._pieces)
            self._pieces = self._buffer.slices()
            await self._take_all(self._pieces)
            if changes := waiting_ops.changes_of(self._unwritten[self._changed :]):
                await change(self._ended_store, self._core.space, changes)
                self._unwritten = await waiting_ops.settled(self._unwritten)
            self._changed = len(self._unwritten)

    async def _take_all(self, pieces: Iterator[Taken]) -> None:
        pace = Pace()
        for piece in pieces:
            self._take(piece)
            await pace.rest()


async def _to_the_end(write: Coroutine[Any, Any, None]) -> None:
    """Waits for a write, which goes on if the caller is cancelled."""
    writing = asyncio.ensure_future(write)
    # A cancelled caller takes no result; `commits` knows of failures.
    writing.add_done_callback(lambda task: task.cancelled() or task.exception())
    await asyncio.shield(writing)
