"""One shard's part of the export: what of it is not in the spool yet, and what the journal holds.

An entry whose rows could not be made, a fault, is *held*: the journal is not cut, so that a start
makes them again, and the export goes on behind it. A checkpoint has to wait for that, so there is
an end to it: `give_up`, and a fault that happens again at the start. Files that cannot be stored
hold the journal, too, until they can be.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jobline_server.engine.effects import Applied
from jobline_server.history.events import rows_of
from jobline_server.history.files import Encoded, NotEncoded, OpenFiles
from jobline_server.history.rows import ROWS_PER_ENTRY, Rows, ShardRows
from jobline_server.runtime import pace
from jobline_server.telemetry.log import logger

LOG = logger("history")

# Rows are encoded when they take so much memory, or are so many jobs: then encoding costs little a
# row, and no row group is much larger.
ENCODED_BYTES, ENCODED_JOBS = 8 << 20, 4_000_000
# Up to so much of a shard is stored while its commits wait for a checkpoint; more of it before.
LAST_JOBS, LAST_BYTES = 250_000, 1 << 20
# The most entries whose rows are made later; with more the commit that adds one makes them, so that
# entries cannot come faster than that.
LINE_MAX = 8


class ShardExport:
    """Rows, open files of `open_bytes`, and finished files. `offset` is the journal's up to which
    rows were taken, `stored` that up to which all is in the spool, `held_from` that of the first
    entry that is held; `is_unstored` says that finished files could not be stored so far, and
    `may_lose` that files are lost that cannot be stored, until a checkpoint is through.
    """

    def __init__(self, shard: int, exported: int) -> None:
        self.shard = shard
        self.rows = ShardRows(exported)
        self.lock = asyncio.Lock()
        self.offset = self.stored = exported
        self.open_bytes = 0
        self.finished: list[Encoded] = []
        self.held_from: int | None = None
        self.is_unstored = self.may_lose = False
        self.held = 0
        self.lost = 0
        self.faults = 0
        # Entries whose rows are not all made, and the journal's offset of the last.
        self._line: deque[Iterator[None]] = deque()
        self._last_offset = exported
        self._going_on: asyncio.Handle | None = None
        # The interpreter is free for the loop after each column, not only after five milliseconds.
        self._files = OpenFiles(shard, rest=partial(time.sleep, 0))

    def take(self, offset: int, applied: Sequence[Applied]) -> None:
        """Makes rows of an entry of the journal, or holds it."""
        self._line.append(self._rows_of(offset, applied))
        while self._line:
            self._make()

    def take_in_steps(self, offset: int, applied: Sequence[Applied]) -> None:
        """Makes rows of an entry, those of many jobs in steps of the loop: a commit may have ended
        tens of thousands. Nothing that an entry has changes meanwhile.
        """
        self._line.append(self._rows_of(offset, applied))
        self._last_offset = offset
        if self._going_on is None:
            self._go_on()
        while len(self._line) > LINE_MAX:
            self._make()

    async def catch_up(self) -> None:
        """Makes the rows of all entries that were taken so far."""
        offset = self._last_offset
        while self._line and self.rows.journal_offset < offset:
            self._make()
            await asyncio.sleep(0)

    def _go_on(self) -> None:
        self._going_on = None
        self._make()
        if self._line:
            self._going_on = asyncio.get_running_loop().call_soon(self._go_on)

    def _make(self) -> None:
        """Makes rows for some milliseconds."""
        until = time.perf_counter() + pace.SLICE_SECONDS
        while self._line:
            for _ in self._line[0]:
                if time.perf_counter() >= until:
                    return
            self._line.popleft()

    def _rows_of(self, offset: int, applied: Sequence[Applied]) -> Iterator[None]:
        """Makes rows of an entry, and yields after each fact."""
        try:
            rows: list[Rows] = []
            for one in applied:
                rows += rows_of((one,))
                yield
            self.rows.add(offset, rows)
        except Exception as error:  # noqa: BLE001  # one entry is no reason to stop the queue
            self.rows.skip(offset)
            self.hold(offset, error)

    def encode(self, rows: Sequence[Rows | None], firsts: Sequence[int]) -> list[NotEncoded]:
        """Encodes rows that were taken, on this thread; returns what could not be."""
        written = self._files.write(rows, firsts)
        self.open_bytes = written.open_bytes
        return written.failed

    def close(self) -> list[NotEncoded]:
        """Finishes the open files, on this thread; returns what could not be."""
        files, failed = self._files.close()
        self.finished += files
        self.open_bytes = 0
        return failed

    def hold(self, offset: int, error: Exception | None) -> None:
        """Has the journal keep everything from an entry on."""
        self.faults += error is not None
        self.held += 1
        self.held_from = offset if self.held_from is None else min(self.held_from, offset)
        LOG.error(
            "events could not be made; the journal keeps them until the next start",
            shard=self.shard,
            offset=offset,
            exc_info=error,
        )

    def hold_failed(self, failed: Sequence[NotEncoded]) -> None:
        """Holds what could not be encoded."""
        for first, error in failed:
            self.hold(first // ROWS_PER_ENTRY, error)

    def keep_unstored(self, bytes_max: int) -> None:
        """Has the journal keep what is in files that cannot be stored. Those that are too large
        together are dropped, the oldest first; the next start makes their events again.
        """
        self.is_unstored = True
        left = sum([len(each.content) for each in self.finished])
        while left > bytes_max:
            file = self.finished.pop(0)
            left -= len(file.content)
            self.hold(file.first // ROWS_PER_ENTRY, None)

    def give_up(self) -> None:
        """Lets the journal forget what it holds: these events are lost, and those in files that
        cannot be stored if they still cannot be.
        """
        self.is_unstored, self.may_lose = False, True
        self.lose_held()

    def lose_held(self) -> None:
        """Counts what is held as lost."""
        if self.held_from is not None:
            LOG.error("events are lost", shard=self.shard, offset=self.held_from, losses=self.held)
            self.lost += self.held
            self.held_from, self.held = None, 0

    def note_missing_until(self, offset: int) -> None:
        """Counts entries before this one that the journal does not have any more: checkpoints took
        them while nothing was exported.
        """
        missing = offset - self.rows.journal_offset - 1
        if missing > 0:
            LOG.warning("the history has a gap", shard=self.shard, offset=offset, losses=missing)
            self.lost += missing
            self.rows.journal_offset = offset - 1

    @property
    def is_held(self) -> bool:
        """Returns whether the journal is all that has some events."""
        return self.held_from is not None or self.is_unstored

    def note_stored(self) -> None:
        """Everything up to `offset` is in the spool, but for what is held."""
        self.is_unstored = False
        held = self.held_from
        self.stored = self.offset if held is None else min(self.offset, held - 1)

    def oldest_ms(self) -> list[int]:
        """Returns the times of the oldest rows that are not in the spool."""
        waiting = self.rows.oldest_ms
        files = [each.oldest_ms for each in self.finished] + self._files.oldest_ms()
        return files if waiting is None else [waiting, *files]

    @property
    def memory_bytes(self) -> int:
        """Returns about how much memory the export of the shard takes."""
        finished = sum([len(each.content) for each in self.finished])
        return self.rows.memory_bytes + self.open_bytes + finished

    def is_much(self, share: int = 1) -> bool:
        """Returns whether its rows are worth encoding, or are a part of what is."""
        rows = self.rows
        return rows.memory_bytes * share > ENCODED_BYTES or rows.count * share > ENCODED_JOBS

    def has_any(self) -> bool:
        """Returns whether anything was taken that is neither stored nor held."""
        return bool(self._line or self.rows.rows or self.open_bytes or self.finished)

    def has_last_only(self) -> bool:
        """Returns whether what is left is stored in a moment."""
        is_small = self.open_bytes <= LAST_BYTES and self.rows.memory_bytes <= LAST_BYTES
        return is_small and self.rows.count <= LAST_JOBS and not self._line


def witness_of(export: ShardExport) -> Callable[[int, Sequence[Applied], int], None]:
    """Returns what takes the facts of a shard's journal at a start, entry by entry. What fails here
    failed before, most likely: it is lost, or the journal would grow for ever.
    """

    def take(offset: int, applied: Sequence[Applied], _blob_bytes: int) -> None:
        if offset > export.rows.journal_offset:
            export.note_missing_until(offset)
            export.take(offset, applied)
            if export.is_much():
                export.hold_failed(export.encode(*export.rows.take()))
            export.lose_held()

    return take
