"""Rows for the tests of stores, and what they look like when they are read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobline_server.storage.store import (
    BadRow,
    ItemKey,
    ItemKind,
    ItemRow,
    JournalRow,
    ShardImage,
    Store,
    chain_of,
)

ID_BLOCK = 1_000

Items = dict[tuple[int, int], bytes]


@dataclass
class Writer:
    """Who has a shard: makes the journal row that comes next, and the checkpoint that comes
    next."""

    shard: int
    epoch: int
    offset: int = 0
    chain: int = 0
    generation: int = 0
    blobs: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, image: ShardImage) -> Writer:
        """The writer of a shard that was just opened."""
        row = image.row
        return cls(row.shard, row.epoch, row.offset, row.chain, row.generation)

    def row(self, blob: bytes) -> JournalRow:
        """The next row; the writer is past it at once."""
        chain = chain_of(blob, self.chain)
        row = JournalRow(self.shard, self.epoch, self.offset + 1, self.chain, chain, blob)
        self.offset, self.chain = row.offset, row.chain
        self.blobs.append(blob)
        return row


async def opened(store: Store, shard: int = 0, epoch_floor: int = 0) -> Writer:
    """Opens a store of two shards, and one of them."""
    await store.open(2)
    return Writer.of(await store.open_shard(shard, epoch_floor, ID_BLOCK))


async def blobs_of(store: Store, shard: int = 0) -> list[bytes]:
    """The blobs of a journal from the checkpoint on."""
    return [row.blob async for page in store.journal(shard) for row in page]


async def items_of(store: Store, shard: int = 0) -> Items:
    """The items of a shard, which must all be good and come in order."""
    found: Items = {}
    async for page in store.items(shard):
        for row in page:
            assert isinstance(row, ItemRow), row
            place = (int(row.kind), row.key)
            assert not found or place > max(found), "items come in order, none twice"
            found[place] = row.blob
    return found


async def bad_of(store: Store, shard: int = 0) -> list[BadRow]:
    """The bad items of a shard."""
    return [row async for page in store.items(shard) for row in page if isinstance(row, BadRow)]


def job(key: int, blob: bytes = b"job", shard: int = 0) -> ItemRow:
    """A job's item."""
    return ItemRow(shard, ItemKind.JOB, key, blob)


def job_keys(*keys: int) -> list[ItemKey]:
    """The keys of jobs."""
    return [(ItemKind.JOB, key) for key in keys]


async def checkpoint(
    store: Store,
    writer: Writer,
    rows: Sequence[ItemRow] = (),
    removals: Sequence[ItemKey] = (),
) -> None:
    """A checkpoint in one step, at the writer's offset."""
    writer.generation += 1
    await store.finish_checkpoint(
        writer.shard,
        writer.epoch,
        writer.generation,
        writer.offset,
        writer.chain,
        rows,
        removals,
    )


async def truncate_all(store: Store, shard: int = 0, limit_rows: int = 100) -> int:
    """Truncates to the end; returns in how many slices."""
    slices = 1
    while await store.truncate(shard, limit_rows):
        slices += 1
        assert slices < 1_000, "a truncation comes to its end"
    return slices
