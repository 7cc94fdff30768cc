"""The exporter: brings committed events into the files of the history.

1. committed facts become rows, some microseconds for each run of jobs (`history.events`);
2. rows become columns in slices of the loop, and Parquet in a thread (`history.files`);
3. each `seconds`, at `file_bytes`, and before a checkpoint lets go of the journal, files are
   finished and stored in the spool, durably;
4. a second thread sends them to the destination, however long that takes.

What is committed and not in the spool is in the journal: a checkpoint waits for step 3, and a start
makes the rows again from the journal after what was exported. Neither steps 1 to 3 nor the queue
wait for the destination: the spool is bounded, and at its bound its oldest files go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar

from jobline_server.engine.effects import Applied
from jobline_server.history.destination import Destination
from jobline_server.history.events import rows_of
from jobline_server.history.files import Encoded, OpenFiles
from jobline_server.history.rows import ShardRows
from jobline_server.history.spool import Spool
from jobline_server.history.tables import Batch, batch_of
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.export_sender import Sender, report
from jobline_server.runtime.loops import pause_after
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.waiting import is_set_within
from jobline_server.telemetry.log import logger

LOG = logger("history")
T = TypeVar("T")

# Rows are encoded when there are so many `Rows`, or so many jobs in them: each `Rows` is an object
# that the garbage collector visits.
RUNS_MAX = 20_000
JOBS_MAX = 250_000
# `Rows` that become columns between two looks at the time.
SLICE_RUNS = 500
# Up to so much of a shard is stored while its commits wait for a checkpoint; more of it before.
LAST_JOBS, LAST_BYTES = 5_000, 256 << 10


@dataclass(frozen=True, slots=True)
class ExporterSettings:
    """When files are finished: after `seconds`, or at `file_bytes` of all files together."""

    seconds: float = 60.0
    file_bytes: int = 64 << 20


@dataclass(slots=True)
class _ShardExport:
    """What of a shard is not in the spool yet: rows, open files of `open_bytes`, finished files.
    `offset` is the journal's up to which rows were taken, `stored` that up to which all is stored.
    """

    rows: ShardRows
    stored: int
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    offset: int = 0
    open_bytes: int = 0
    finished: list[Encoded] = field(default_factory=list)


class Exporter:
    """Exports the events of the shards that are recovered through it (`witness`)."""

    def __init__(
        self, spool: Spool, destination: Destination, settings: ExporterSettings, clock: Clock
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._settings = settings
        self._files = OpenFiles()
        self._exported = spool.exported()
        self._shards: dict[int, _ShardExport] = {}
        # Two, so that what a checkpoint waits for does not wait for another shard.
        self._encoders = ThreadPoolExecutor(2, "history")
        self._saving = asyncio.Lock()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._finished_at = monotonic()
        self._task: asyncio.Task[None] | None = None
        self.sender = Sender(spool, destination)
        self.rows_total = 0
        self.files_total = 0
        self.failures = 0

    def witness(self, shard: int, now_offset: int) -> Callable[[int, Sequence[Applied], int], None]:
        """Returns who takes the facts of a shard's journal at a start, row by row. The shard was
        opened at `now_offset`; one that was never exported begins there.
        """
        exported = self._exported.setdefault(shard, now_offset)
        if exported > now_offset:
            LOG.warning("the history is ahead of the store", shard=shard, offset=now_offset)
            exported = self._exported[shard] = now_offset
        export = self._shards[shard] = _ShardExport(ShardRows(exported), exported)

        def take(offset: int, applied: Sequence[Applied], _blob_bytes: int) -> None:
            if offset > exported:
                rows = export.rows
                rows.add(offset, rows_of(applied))
                if _is_much(rows, JOBS_MAX, RUNS_MAX):
                    export.open_bytes = self._files.write(shard, [batch_of(*rows.take())])

        return take

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Takes the facts of a commit."""
        for batch in batches:
            if batch.is_commit:
                rows = self._shards[batch.shard.number].rows
                rows.add(batch.offset, rows_of(batch.applied))
                if _is_much(rows, JOBS_MAX, RUNS_MAX):
                    self._wake.set()

    def start(self) -> None:
        """Starts the tasks. Call it when all shards are open."""
        # From now on nothing is left out, even if this process ends before it stores any file.
        self._spool.save_exported(self._exported)
        self._task = asyncio.get_running_loop().create_task(self._keep_writing())
        self.sender.start()

    async def stop(self) -> None:
        """Stores what is left, and sends it if that is possible at once; a start sends the rest."""
        self._stopping.set()
        self._wake.set()
        if self._task is not None:
            await self._task
            try:
                await self._finish_all()
            except Exception as error:  # noqa: BLE001  # the journal has it all
                LOG.warning("the history is not all stored; a start goes on", why=str(error))
        await self.sender.stop()
        self._encoders.shutdown()

    async def prepare(self, shard: int) -> None:
        """Stores most of a shard's events, so that `finish` has little to do. Raises as that."""
        export = self._shards[shard]
        if export.open_bytes > LAST_BYTES or _is_much(export.rows, LAST_JOBS, LAST_JOBS):
            await self.finish(shard)

    async def finish(self, shard: int) -> None:
        """Stores all events of a shard that are committed so far, durably: the journal may forget
        them then. Raises `OSError` if the spool cannot be written.
        """
        export = self._shards[shard]
        async with export.lock:
            await self._encode(shard, export)
            if export.open_bytes:
                export.finished += await self._in_thread(self._files.close, shard)
                export.open_bytes = 0
            while export.finished:
                file = export.finished[0]
                if not await self._in_thread(self._spool.put, file):
                    LOG.error("no room for the history: events are lost", file=file.path)
                export.finished.pop(0)
                self.files_total += 1
                self.rows_total += file.rows
                self.sender.wake()
            export.stored = export.offset
        await self._save()

    async def _save(self) -> None:
        async with self._saving:
            stored = {number: export.stored for number, export in self._shards.items()}
            offsets = self._exported | stored
            if offsets != self._exported:
                await self._in_thread(self._spool.save_exported, offsets)
                self._exported = offsets

    async def _encode(self, shard: int, export: _ShardExport) -> None:
        """Encodes the rows that have gathered; what comes meanwhile waits for the next time."""
        offset = export.rows.journal_offset
        rows, firsts = export.rows.take()
        batches: list[Batch] = []
        pace = Pace()
        for low in range(0, len(rows), SLICE_RUNS):
            part = slice(low, low + SLICE_RUNS)
            batches.append(batch_of(rows[part], firsts[part]))
            await pace.rest()
        if batches:
            export.open_bytes = await self._in_thread(self._files.write, shard, batches)
        export.offset = offset

    async def _keep_writing(self) -> None:
        """Encodes what has gathered, and finishes files when it is time."""
        in_a_row = 0
        while not self._stopping.is_set():
            left = self._settings.seconds - (monotonic() - self._finished_at)
            await is_set_within(self._wake, max(left, 0.01))
            self._wake.clear()
            try:
                await self._write_due()
                in_a_row = 0
            except Exception as error:  # noqa: BLE001  # the journal has it all: it is tried again
                self.failures += 1
                in_a_row += 1
                report(LOG, "the history cannot be stored", error, in_a_row)
                await is_set_within(self._stopping, pause_after(in_a_row))

    async def _write_due(self) -> None:
        if monotonic() - self._finished_at < self._settings.seconds:
            for number, export in self._shards.items():
                if _is_much(export.rows, JOBS_MAX // 8, RUNS_MAX // 8):
                    async with export.lock:
                        await self._encode(number, export)
            if sum(each.open_bytes for each in self._shards.values()) < self._settings.file_bytes:
                return
        self._finished_at = monotonic()
        await self._finish_all()

    async def _finish_all(self) -> None:
        for number, export in self._shards.items():
            if export.rows.rows or export.open_bytes or export.finished:
                await self.finish(number)
            elif not export.lock.locked():
                # Its entries had no events.
                export.stored = export.rows.journal_offset
        await self._save()

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._encoders, partial(work, *arguments))

    @property
    def spool_bytes(self) -> int:
        """Returns the bytes of the files that the destination does not have yet."""
        return self._spool.bytes

    @property
    def lost_files(self) -> int:
        """Returns how many files had to go before the destination had them."""
        return self._spool.lost_files

    @property
    def lag_seconds(self) -> float:
        """Returns the age of the oldest event that the destination does not have yet."""
        oldest = [each.rows.rows[0].at for each in self._shards.values() if each.rows.rows]
        oldest += [*self._spool.oldest_ms(), *self._files.oldest_ms()]
        return max((self._clock.now().wall_ms - min(oldest)) / 1_000, 0.0) if oldest else 0.0


def _is_much(rows: ShardRows, jobs: int, runs: int) -> bool:
    return rows.count > jobs or len(rows.rows) > runs
