"""The interface of a store: rows and blobs of shards, durable and fenced.

All writes of a shard check its *shard row*, which has the epoch, offset and chain of the last
commit. A commit names the epoch under which it was made, the offset that follows and the chain that
it continues. If the row differs, nothing is written. So the writes of a shard have one order,
whichever process makes them.

A failed write is one of three: definite (`CommitRefused`: nothing was stored), unknown
(`CommitUnknown`: it may have been stored), or fenced (`Fenced`: another process owns the shard, or
there is a bug). The last two name the shards that they concern; other shards go on.

A store knows nothing of jobs: blobs are opaque, keys are numbers. It reads no clock and starts
nothing by itself. `tests/storage/storage_contract.py` is this file as tests.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

NO_CEILINGS: Mapping[int, int] = MappingProxyType({})


class ItemKind(IntEnum):
    """The kind of an item; also the order in which a shard is loaded. A store returns items of
    other kinds too, which a newer version wrote: they are not damaged, so they are not set apart.
    """

    SHARD = 0
    QUEUE = 1
    LOT = 2
    JOB = 3
    KEYS = 4
    PRODUCER = 5
    MESSAGE = 6
    INBOX = 7
    BUNDLE = 8
    LOT_PAYLOADS = 9
    THROTTLE = 20
    AWAITED = 25
    GROUP = 30
    LIMITER = 35
    SCHEDULE = 50
    BATCH = 55
    WEBHOOK = 60
    WEBHOOK_DELIVERY = 61


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One commit of one shard. `chain` is `chain_of(blob, chain_before)`."""

    shard: int
    epoch: int
    offset: int
    chain_before: int
    chain: int
    blob: bytes


@dataclass(frozen=True, slots=True)
class ShardRow:
    """The fence of a shard, and the checkpoint that its items belong to.

    `offset` and `chain` are those of the last commit, 0 before the first. Sequence numbers of ids
    below `id_ceiling` may have been given out. Items of a later `generation` are not visible.
    """

    shard: int
    epoch: int
    offset: int
    chain: int
    id_ceiling: int
    checkpoint_offset: int
    checkpoint_chain: int
    generation: int


@dataclass(frozen=True, slots=True)
class ShardImage:
    """A shard that was just opened, with its row under the new epoch.

    Sequence numbers from `first_free_id_sequence` up to `row.id_ceiling` were never given out; the
    caller may give them. `set_apart` counts journal rows that are lost, because the loss was
    accepted.
    """

    row: ShardRow
    first_free_id_sequence: int
    set_apart: int = 0


class ItemRow(NamedTuple):
    """A visible item. `key` has up to 53 bits, and is unique within its kind in the whole store."""

    shard: int
    kind: ItemKind
    key: int
    blob: bytes


@dataclass(frozen=True, slots=True)
class BadRow:
    """An item whose checksum is wrong. It was set apart; `blob` is the content that was found."""

    shard: int
    kind: int
    key: int
    blob: bytes


ItemKey = tuple[ItemKind, int]


class CommitRefused(Exception):
    """Definite: nothing of this write was stored."""


class DiskFull(CommitRefused):
    """The disk has no room, even without the ballast. The same write may be retried."""


class ShardsFailed(Exception):
    """A write failed, which concerns `shards`."""

    def __init__(self, message: str, *, shards: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.shards = frozenset(shards)


class CommitUnknown(ShardsFailed):
    """It is unknown whether this write was stored for `shards`, or for all of its shards if none
    are named; for others it was not stored. Call `Store.resolve`. If that cannot know either, the
    shards cannot be served any more, or the process must stop."""


class Fenced(ShardsFailed):
    """The rows of `shards` are not those that the writer continues: another process writes them.
    Nothing of this write was stored, for any shard; the writer must not write these again."""


class StoreRefused(Exception):
    """The store cannot be opened; the message says why and what to do. Nothing was changed."""


class DataLoss(Exception):
    """Something that was stored cannot be read back unchanged. `case` is a number of
    `recovery_cases`."""

    def __init__(self, message: str, *, case: int = 0) -> None:
        super().__init__(message)
        self.case = case


def chain_of(blob: bytes, before: int) -> int:
    """Returns the chain after `blob`: a checksum of all blobs of the shard up to this one."""
    return zlib.crc32(blob, before)


class Store(Protocol):
    """A store of shards. Calls for one shard come one at a time; those for others may overlap."""

    async def open(self, shards: int) -> int:
        """Makes the store, or opens it, and returns its number of shards.

        The number is fixed when the store is made. 0 takes the number of an existing store, or the
        default for a new one. Raises `StoreRefused` if an existing store has another number, is in
        use by another process, has another format, or lost commits that it acknowledged.
        """

    async def open_shard(self, shard: int, epoch_floor: int, id_block: int) -> ShardImage:
        """Takes the shard under a new epoch, durably: one more than before, at least `epoch_floor`.

        Raises `id_ceiling` by `id_block` in the same transaction, and deletes what an unfinished
        checkpoint left. Call `items` next, then `journal`.
        """

    def items(self, shard: int) -> AsyncIterator[list[ItemRow | BadRow]]:
        """Yields the items of the last finished checkpoint by (kind, key), in pages.

        A row with a bad checksum is set apart and yielded as a `BadRow`.
        """

    def journal(self, shard: int) -> AsyncIterator[list[JournalRow]]:
        """Yields the journal after the checkpoint, in pages of verified rows.

        Raises `DataLoss` with a number of `recovery_cases` at the first row that does not continue
        the journal, and at the end if it stops short of the shard row.
        """

    async def commit(
        self, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int] = NO_CEILINGS
    ) -> None:
        """Stores rows of any shards, up to one per shard, durably: all of them or none.

        Raises the `id_ceilings` (shard → new ceiling) in the same transaction; a ceiling never
        falls. Returns after the fsync. Raises `Fenced`, `CommitRefused` or `CommitUnknown`.
        """

    async def resolve(self, shard: int, epoch: int, offset: int, chain: int) -> bool:
        """Returns whether a row whose commit was unknown is stored, durably.

        False: it is not and never will be, and the same row may be committed again. A commit may
        have several rows of a shard: one is stored, too, if those after it are. Raises `Fenced` if
        the shard row is neither there nor where it was before, and `CommitUnknown` if the store
        cannot know.
        """

    async def stage(
        self,
        shard: int,
        epoch: int,
        generation: int,
        rows: Sequence[ItemRow],
        removals: Sequence[ItemKey],
    ) -> None:
        """Writes a slice of a checkpoint; none of it is visible before `finish_checkpoint`.

        `generation` is that of the shard plus one, else `Fenced`. `removals` are the keys of items
        that are gone; a key that was never stored does no harm. Within a generation the last write
        of a key counts: a caller that abandons a checkpoint writes or removes all of it again with
        the next. Raises as `commit`.
        """

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
        """Writes the last slice and makes the generation visible, in one transaction.

        From then on the items hold all facts up to `offset`, where the journal's chain was `chain`.
        Call `truncate` next. Raises as `commit`.
        """

    async def drop_staged(self, shard: int) -> None:
        """Deletes what an unfinished checkpoint staged, which frees pages for the journal. May take
        all of the reserve. Raises as `commit`."""

    async def truncate(self, shard: int, limit_rows: int) -> int:
        """Deletes a slice of what the last checkpoint replaced: item versions, then journal rows.

        Deletes up to `limit_rows` rows, fewer if they are large. Returns how many are known to
        remain, counted up to `limit_rows`; 0 when it is done.
        """

    async def close(self) -> None:
        """Closes files and lock; may be called twice, or without `open`."""
