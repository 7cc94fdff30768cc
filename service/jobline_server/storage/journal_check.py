"""Checks a journal as it is read, and finds its case of `recovery_cases`."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.storage.recovery_cases import (
    AHEAD_OF_THE_CHECKPOINT,
    BAD_CHECKSUM,
    BEYOND_THE_SHARD_ROW,
    BROKEN_CHAIN,
    CHECKPOINT_AHEAD,
    GAP,
    NOTHING_TO_REPLAY,
    SHORT_OF_THE_SHARD_ROW,
    STRAY_EPOCH,
    WHOLE,
    RecoveryCase,
)
from jobline_server.storage.store import JournalRow, ShardRow, chain_of


class JournalCheck:
    """Checks a journal page by page. It is good up to `offset` and `chain`."""

    __slots__ = ("_epoch", "_shard", "chain", "offset")

    def __init__(self, shard: ShardRow) -> None:
        self._shard = shard
        self._epoch = 0
        self.offset = shard.checkpoint_offset
        self.chain = shard.checkpoint_chain

    def begin(self) -> RecoveryCase | None:
        """Returns a reason not to read the journal, or None. Call `take` with each page next, then
        `finish`."""
        return CHECKPOINT_AHEAD if self._shard.checkpoint_offset > self._shard.offset else None

    def take(self, rows: Sequence[JournalRow]) -> tuple[Sequence[JournalRow], RecoveryCase | None]:
        """Returns the rows that continue the journal, and the case if not all do: then no row
        behind them may be applied."""
        for count, row in enumerate(rows):
            case = self._place_of(row) or self._content_of(row)
            if case is not None:
                return rows[:count], case
            self.offset, self.chain, self._epoch = row.offset, row.chain, row.epoch
        return rows, None

    def finish(self) -> RecoveryCase:
        """Returns the case of the journal, after its last row."""
        if self.offset < self._shard.offset:
            return SHORT_OF_THE_SHARD_ROW
        if self.chain != self._shard.chain:
            return BROKEN_CHAIN
        return WHOLE if self._epoch else NOTHING_TO_REPLAY

    def _place_of(self, row: JournalRow) -> RecoveryCase | None:
        if row.offset > self._shard.offset:
            return BEYOND_THE_SHARD_ROW
        if row.offset != self.offset + 1:
            return GAP if self._epoch else AHEAD_OF_THE_CHECKPOINT
        return None

    def _content_of(self, row: JournalRow) -> RecoveryCase | None:
        if row.chain_before != self.chain:
            return BROKEN_CHAIN
        if chain_of(row.blob, row.chain_before) != row.chain:
            return BAD_CHECKSUM
        if not self._epoch <= row.epoch <= self._shard.epoch:
            return STRAY_EPOCH
        return None
