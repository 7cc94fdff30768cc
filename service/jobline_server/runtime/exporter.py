"""The exporter: brings committed events into the files of the history.

1. committed facts become rows, some microseconds for each fact, in steps (`history.events`);
2. rows become Parquet in a thread, when there are enough of them (`history.files`);
3. each `seconds`, at `file_bytes`, and before a checkpoint lets go of the journal, files are
   finished and stored in the spool, durably;
4. a second thread sends them to the destination, however long that takes.

What is committed and not in the spool is in the journal: a checkpoint waits for step 3, and a start
makes the rows again from the journal after what was exported. Neither steps 1 to 3 nor the queue
wait for the destination: the spool is bounded, and at its bound its oldest files go. If rows come
faster than they are encoded, commits wait for step 2 at `WAITING_BYTES_MAX`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TypeVar

from jobline_server.engine.effects import Applied
from jobline_server.history.destination import Destination
from jobline_server.history.files import Encoded
from jobline_server.history.spool import Spool, is_full
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.export_sender import Sender, report
from jobline_server.runtime.export_shard import ShardExport, witness_of
from jobline_server.runtime.loops import pause_after
from jobline_server.runtime.waiting import is_set_within
from jobline_server.telemetry.log import logger

LOG = logger("history")
T = TypeVar("T")

# Rows of a shard that wait to be encoded; beyond that its commits wait, too.
WAITING_BYTES_MAX = 64 << 20
# Finished files that cannot be stored, of all shards, as a multiple of `file_bytes`; beyond its
# share of that the oldest of a shard are dropped, and the journal keeps their events.
UNSTORED_FILES_MAX = 4


@dataclass(frozen=True, slots=True)
class ExporterSettings:
    """When files are finished: after `seconds`, or at `file_bytes` of all files together."""

    seconds: float = 60.0
    file_bytes: int = 64 << 20


class EventsHeld(Exception):
    """The journal is all that has some events; they are made again at the next start."""


class Exporter:
    """Exports the events of the shards that are recovered through it (`witness`)."""

    def __init__(
        self, spool: Spool, destination: Destination, settings: ExporterSettings, clock: Clock
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._settings = settings
        self._exported = spool.exported()
        self._shards: dict[int, ShardExport] = {}
        self._opened_at: dict[int, int] = {}
        # Two, so that what a checkpoint waits for does not wait for another shard.
        self._encoders = ThreadPoolExecutor(2, "history")
        self._commits = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._finish_at = monotonic() + settings.seconds
        self._retry_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self.sender = Sender(spool, destination)
        self.rows_total = 0
        self.failures = 0

    def witness(self, shard: int, now_offset: int) -> Callable[[int, Sequence[Applied], int], None]:
        """Returns who takes the facts of a shard's journal at a start, row by row. The shard was
        opened at `now_offset`; one that was never exported begins there.
        """
        exported = self._exported.setdefault(shard, now_offset)
        if exported > now_offset:
            LOG.warning("the history is ahead of the store", shard=shard, offset=now_offset)
            exported = self._exported[shard] = now_offset
        self._opened_at[shard] = now_offset
        export = self._shards[shard] = ShardExport(shard, exported)
        return witness_of(export)

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Takes the facts of a commit."""
        for batch in batches:
            if batch.is_commit:
                export = self._shards[batch.shard.number]
                export.take_in_steps(batch.offset, batch.applied)
                if export.is_much():
                    self._wake.set()

    def start(self, commits: asyncio.Lock) -> None:
        """Starts the tasks. Call it when all shards are open; who has `commits` stops commits."""
        self._commits = commits
        for shard, export in self._shards.items():
            export.note_missing_until(self._opened_at[shard] + 1)
        # From now on nothing is left out, even if this process ends before it stores any file.
        try:
            self._spool.save_exported(self._exported)
        except OSError as error:
            if not is_full(error):
                raise
            self._note_unsaved(error)
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

    def holds(self, shard: int) -> bool:
        """Returns whether the journal of a shard must be kept, as all that has some events."""
        return self._shards[shard].is_held

    def give_up(self, shard: int) -> None:
        """Lets the journal of a shard forget what it holds: these events are lost."""
        self._shards[shard].give_up()

    async def prepare(self, shard: int) -> None:
        """Stores most of a shard's events, so that `finish` has little to do. Raises as that."""
        if not self._shards[shard].has_last_only():
            await self._store(self._shards[shard])

    async def finish(self, shard: int) -> None:
        """Stores all events of a shard that are committed so far, durably: the journal may forget
        them then. Raises `OSError` if the spool cannot be written, or `EventsHeld`.
        """
        export = self._shards[shard]
        await self._store(export)
        if self.holds(shard):
            raise EventsHeld(f"shard {shard}, from offset {export.held_from} on")
        export.may_lose = False

    async def _store(self, export: ShardExport) -> None:
        async with export.lock:
            await self._encode(export)
            if export.open_bytes:
                export.hold_failed(await self._in_thread(export.close))
            while export.finished:
                file = export.finished[0]
                if await self._is_put(export, file):
                    self.rows_total += file.rows
                    self.sender.wake()
                export.finished.pop(0)
            export.note_stored()
        await self._save()

    async def _is_put(self, export: ShardExport, file: Encoded) -> bool:
        """Puts a file into the spool; returns whether it is there, or lost. Raises any error if it
        is neither: it is tried again soon.
        """
        try:
            if await self._in_thread(self._spool.put, file):
                return True
            why = "no room"
        except Exception as error:
            if not export.may_lose:
                share = self._settings.file_bytes // len(self._shards)
                export.keep_unstored(UNSTORED_FILES_MAX * share)
                self._finish_at = min(self._finish_at, monotonic() + pause_after(1))
                self._wake.set()
                raise
            self._spool.count_lost(file)
            why = str(error)
        LOG.error("a file of the history is lost", file=file.path, rows=file.rows, why=why)
        return False

    async def _save(self) -> None:
        async with self._saving:
            stored = {number: export.stored for number, export in self._shards.items()}
            offsets = self._exported | stored
            if offsets != self._exported:
                try:
                    await self._in_thread(self._spool.save_exported, offsets)
                except OSError as error:
                    self._note_unsaved(error)
                else:
                    self._exported = offsets

    def _note_unsaved(self, error: OSError) -> None:
        """Their events are in files: after a crash some are made again, and none is missing."""
        self.failures += 1
        LOG.warning("the offsets of the history cannot be saved", why=str(error))

    async def _encode(self, export: ShardExport) -> None:
        """Encodes the rows that have gathered; what comes meanwhile waits for the next time."""
        await export.catch_up()
        offset = export.rows.journal_offset
        if export.rows.rows:
            export.hold_failed(await self._in_thread(export.encode, *export.rows.take()))
        export.offset = offset

    async def _keep_writing(self) -> None:
        """Encodes what has gathered, and finishes files when it is time."""
        in_a_row = 0
        while not self._stopping.is_set():
            left = max(self._finish_at, self._retry_at) - monotonic()
            await is_set_within(self._wake, max(left, 0.01))
            self._wake.clear()
            try:
                await self._encode_much()
                if self._is_time():
                    self._finish_at = monotonic() + self._settings.seconds
                    await self._finish_all()
                    in_a_row = 0
            except Exception as error:  # noqa: BLE001  # the journal has it all: it is tried again
                self.failures += 1
                in_a_row += 1
                report(LOG, "the history cannot be stored", error, in_a_row)
                self._finish_at = self._retry_at = monotonic() + pause_after(in_a_row)

    def _is_time(self) -> bool:
        now, open_bytes = monotonic(), sum([each.open_bytes for each in self._shards.values()])
        is_due = now >= self._finish_at or open_bytes >= self._settings.file_bytes
        return is_due and now >= self._retry_at

    async def _encode_much(self) -> None:
        for export in self._shards.values():
            if export.rows.memory_bytes > WAITING_BYTES_MAX:
                async with self._commits, export.lock:
                    await self._encode(export)
            elif export.is_much(share=4):
                async with export.lock:
                    await self._encode(export)

    async def _finish_all(self) -> None:
        """Stores what there is of all shards. Raises the first error, when all were tried."""
        errors: list[Exception] = []
        for export in self._shards.values():
            if export.has_any():
                try:
                    await self._store(export)
                except Exception as error:  # noqa: BLE001  # raised when all were tried
                    errors.append(error)
            elif not export.lock.locked():
                # Its entries had no events.
                export.offset = export.rows.journal_offset
                export.note_stored()
        await self._save()
        if errors:
            raise errors[0]

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._encoders, partial(work, *arguments))

    @property
    def spool_bytes(self) -> int:
        """Returns the bytes of the files that the destination does not have yet."""
        return self._spool.bytes

    @property
    def memory_bytes(self) -> int:
        """Returns about how much memory events take that are not in the spool yet."""
        return sum([each.memory_bytes for each in self._shards.values()])

    @property
    def lost_files(self) -> int:
        """Returns how many files had to go before the destination had them."""
        return self._spool.lost_files

    @property
    def faults(self) -> int:
        """Returns how often events could not be made."""
        return sum([each.faults for each in self._shards.values()])

    @property
    def lost_entries(self) -> int:
        """Returns of how many entries of the journal events are lost."""
        return sum([each.lost for each in self._shards.values()])

    @property
    def lag_seconds(self) -> float:
        """Returns the age of the oldest event that the destination does not have yet."""
        oldest = self._spool.oldest_ms()
        for each in self._shards.values():
            oldest += each.oldest_ms()
        return max((self._clock.now().wall_ms - min(oldest)) / 1_000, 0.0) if oldest else 0.0
