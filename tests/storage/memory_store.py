"""A store in memory, for tests that break off at any point: every call is atomic and durable.

It keeps what the interface says and nothing else: a fence, a journal, items of one generation and
those that are staged for the next. Pages are small, so that their edges are met.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from jobline_server.engine.limits import SHARDS_DEFAULT, SHARDS_MAX
from jobline_server.storage.journal_check import JournalCheck
from jobline_server.storage.recovery_cases import Decision
from jobline_server.storage.store import (
    NO_CEILINGS,
    BadRow,
    DataLoss,
    Fenced,
    ItemKey,
    ItemKind,
    ItemRow,
    JournalRow,
    ShardImage,
    ShardRow,
    StoreRefused,
)

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never really waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # what the coroutine returns
    coroutine.close()
    raise AssertionError("a store in memory has nothing to wait for")


class _ShardFile:
    """What is on disk of one shard."""

    def __init__(self, number: int) -> None:
        self.row = ShardRow(number, 0, 0, 0, 1, 0, 0, 0)
        self.journal: list[JournalRow] = []
        self.items: dict[ItemKey, bytes] = {}
        self.staged: dict[ItemKey, bytes | None] = {}
        self.superseded = 0


class MemoryStore:
    """Implements `Store`. `rotten` are items whose checksum is wrong; `rows_written` counts items
    that were staged.
    """

    def __init__(self, *, page_rows: int = 3) -> None:
        self._page_rows = page_rows
        self._shards: dict[int, _ShardFile] = {}
        self.rotten: set[ItemKey] = set()
        self.rows_written = 0

    async def open(self, shards: int) -> int:
        if not 0 <= shards <= SHARDS_MAX:
            raise StoreRefused(f"{shards} shards asked for; a store has 1 to {SHARDS_MAX}")
        found = len(self._shards)
        if found and shards not in (0, found):
            raise StoreRefused(f"the store was made with {found} shards and {shards} are asked for")
        if not found:
            for number in range(shards or SHARDS_DEFAULT):
                self._shards[number] = _ShardFile(number)
        return len(self._shards)

    async def open_shard(self, shard: int, epoch_floor: int, id_block: int) -> ShardImage:
        if shard not in self._shards:
            raise ValueError(f"the store has no shard {shard}")
        file = self._shards[shard]
        free = file.row.id_ceiling
        file.staged.clear()
        file.row = replace(
            file.row, epoch=max(file.row.epoch + 1, epoch_floor), id_ceiling=free + id_block
        )
        return ShardImage(file.row, free)

    async def items(self, shard: int) -> AsyncIterator[list[ItemRow | BadRow]]:
        rows: list[ItemRow | BadRow] = []
        for (kind, key), blob in sorted(self._shards[shard].items.items()):
            bad = (kind, key) in self.rotten
            rows.append(BadRow(shard, kind, key, blob) if bad else ItemRow(shard, kind, key, blob))
        for start in range(0, len(rows), self._page_rows):
            yield rows[start : start + self._page_rows]

    async def journal(self, shard: int) -> AsyncIterator[list[JournalRow]]:
        file = self._shards[shard]
        check = JournalCheck(file.row)
        rows = [row for row in file.journal if row.offset > file.row.checkpoint_offset]
        for start in range(0, len(rows), self._page_rows):
            good, case = check.take(rows[start : start + self._page_rows])
            yield list(good)
            if case is not None:
                raise DataLoss(str(case), case=case.number)
        case = check.finish()
        if case.decision is Decision.REFUSE:
            raise DataLoss(str(case), case=case.number)

    async def commit(
        self, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int] = NO_CEILINGS
    ) -> None:
        fenced = [row.shard for row in rows if not self._continues(row)]
        if fenced:
            raise Fenced(f"shards {fenced} are elsewhere", shards=fenced)
        for row in rows:
            file = self._shards[row.shard]
            file.journal.append(row)
            file.row = replace(file.row, offset=row.offset, chain=row.chain)
        for shard, ceiling in id_ceilings.items():
            file = self._shards[shard]
            file.row = replace(file.row, id_ceiling=max(ceiling, file.row.id_ceiling))

    def _continues(self, row: JournalRow) -> bool:
        fence = self._shards[row.shard].row
        known = (fence.epoch, fence.offset, fence.chain)
        return known == (row.epoch, row.offset - 1, row.chain_before)

    async def resolve(self, shard: int, epoch: int, offset: int, chain: int) -> bool:
        row = self._shards[shard].row
        if (row.epoch, row.offset, row.chain) == (epoch, offset, chain):
            return True
        if (row.epoch, row.offset) == (epoch, offset - 1):
            return False
        raise Fenced(f"shard {shard} is elsewhere", shards=(shard,))

    async def stage(
        self,
        shard: int,
        epoch: int,
        generation: int,
        rows: Sequence[ItemRow],
        removals: Sequence[ItemKey],
    ) -> None:
        file = self._may_stage(shard, epoch, generation)
        file.staged.update(dict.fromkeys(removals))
        file.staged.update({(row.kind, row.key): row.blob for row in rows})
        self.rows_written += len(rows)

    async def finish_checkpoint(
        self,
        shard: int,
        epoch: int,
        generation: int,
        offset: int,
        chain: int,
        rows: Sequence[ItemRow],
        removals: Sequence[ItemKey],
    ) -> None:
        if offset > self._shards[shard].row.offset:
            raise Fenced(f"shard {shard} has not committed offset {offset}", shards=(shard,))
        await self.stage(shard, epoch, generation, rows, removals)
        file = self._shards[shard]
        file.superseded += len(file.staged.keys() & file.items.keys())
        for key, blob in file.staged.items():
            if blob is None:
                file.items.pop(key, None)
            else:
                file.items[key] = blob
        file.staged.clear()
        file.row = replace(
            file.row, generation=generation, checkpoint_offset=offset, checkpoint_chain=chain
        )

    def _may_stage(self, shard: int, epoch: int, generation: int) -> _ShardFile:
        file = self._shards[shard]
        if (file.row.epoch, file.row.generation + 1) != (epoch, generation):
            raise Fenced(f"shard {shard} is at another generation", shards=(shard,))
        return file

    async def drop_staged(self, shard: int) -> None:
        self._shards[shard].staged.clear()

    async def truncate(self, shard: int, limit_rows: int) -> int:
        file = self._shards[shard]
        versions = min(limit_rows, file.superseded)
        file.superseded -= versions
        cut = [row for row in file.journal if row.offset <= file.row.checkpoint_offset]
        rows = min(limit_rows - versions, len(cut))
        del file.journal[:rows]
        return min(limit_rows, file.superseded + len(cut) - rows)

    async def close(self) -> None:
        pass

    # What tests look at.

    def item_keys(self, shard: int, kind: ItemKind) -> list[int]:
        """Keys of the visible items of a kind."""
        return sorted(key for a_kind, key in self._shards[shard].items if a_kind == kind)

    def forget(self, shard: int, kind: ItemKind, key: int) -> None:
        """A visible item is gone, as one is that was set apart."""
        del self._shards[shard].items[kind, key]

    def blob_of(self, shard: int, kind: ItemKind, key: int) -> bytes:
        """A visible item."""
        return self._shards[shard].items[kind, key]
