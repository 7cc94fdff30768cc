"""The interface of a store: rows and blobs of shards, durable and fenced.

The idea: all writes of a shard pass its *shard row*, which holds (epoch, offset, chain). A commit
names the epoch it was made under, the offset that follows and the chain it continues; if the row
says anything else, nothing is written. So a shard's writes have one order, whoever writes them.

A failed write says which of three it is: definite (`CommitRefused`: nothing was stored), unknown
(`CommitUnknown`: it may have been; ask, or stop), or fenced (`Fenced`: somebody else's shard now,
or a bug). The last two name the shards that they concern; other shards go on.

A store knows nothing of jobs: blobs are opaque, keys are numbers. It reads no clock and has no beat
of its own; it does what it is called for. `tests/storage/storage_contract.py` is this file as
tests.
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
    """What an item is; also the order in which a shard is loaded. A store hands out items of other
    kinds too, which a newer version wrote: as they are no loss, nothing sets them apart.
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
    """Where a shard stands: the fence, and the checkpoint that its items belong to.

    `offset` and `chain` are those of the last commit, 0 before the first. Sequence numbers of ids
    below `id_ceiling` may have been given out. Items of a `generation` above this one are not there
    yet.
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
    """A shard that was just opened: its row under the new epoch.

    Sequence numbers from `first_free_id_sequence` up to `row.id_ceiling` were never given out and
    are the caller's to give. `set_apart` counts journal rows given up because the loss was
    accepted.
    """

    row: ShardRow
    first_free_id_sequence: int
    set_apart: int = 0


class ItemRow(NamedTuple):
    """An item as it is visible. `key` has at most 53 bits and is unique in its kind over the whole
    store."""

    shard: int
    kind: ItemKind
    key: int
    blob: bytes


@dataclass(frozen=True, slots=True)
class BadRow:
    """An item whose checksum is wrong. It was set apart; `blob` is what was found."""

    shard: int
    kind: int
    key: int
    blob: bytes


ItemKey = tuple[ItemKind, int]


class CommitRefused(Exception):
    """Definite: nothing of this write was stored."""


class DiskFull(CommitRefused):
    """There is no room, not even with the ballast given up. The same write may be tried again."""


class ShardsFailed(Exception):
    """A write failed, which concerns `shards`."""

    def __init__(self, message: str, *, shards: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.shards = frozenset(shards)


class CommitUnknown(ShardsFailed):
    """Whether this write was stored is not known for `shards`, or for all of its shards if none are
    named; for others it was not stored. Ask `Store.resolve`. Where nobody can be asked, the shards
    cannot be served any more, or the process must stop."""


class Fenced(ShardsFailed):
    """The rows of `shards` are not where the writer believes they are: others write them now.
    Nothing of this write was stored, for no shard; the writer must write these no more."""


class StoreRefused(Exception):
    """The store cannot be opened; the message says why and what to do. Nothing was changed."""


class DataLoss(Exception):
    """Something that was stored cannot be read back as it was. `case` is a number of
    `recovery_cases`."""

    def __init__(self, message: str, *, case: int = 0) -> None:
        super().__init__(message)
        self.case = case


def chain_of(blob: bytes, before: int) -> int:
    """The chain after `blob`: a checksum of all blobs of the shard up to this one."""
    return zlib.crc32(blob, before)


class Store(Protocol):
    """A store of shards. One caller at a time a shard; calls for different shards may overlap."""

    async def open(self, shards: int) -> int:
        """Makes the store, or opens it, and returns its number of shards.

        The number is fixed when the store is made. 0 takes what is there, or the default for a new
        one; any other number that differs from what is there raises `StoreRefused`. It is also
        raised if another process has the store, if its format is not ours, or if it lost what it
        had promised.
        """

    async def open_shard(self, shard: int, epoch_floor: int, id_block: int) -> ShardImage:
        """Takes the shard under a new epoch, durably: one more than before, `epoch_floor` at least.

        `id_ceiling` moves up by `id_block` in the same transaction. What an unfinished checkpoint
        left behind is deleted. Call `items`, then `journal` next.
        """

    def items(self, shard: int) -> AsyncIterator[list[ItemRow | BadRow]]:
        """The items of the last finished checkpoint by (kind, key), in pages.

        A row with a bad checksum comes as a `BadRow` and is set apart; its neighbours go on.
        """

    def journal(self, shard: int) -> AsyncIterator[list[JournalRow]]:
        """The journal from the checkpoint on, in pages, each row verified before it is yielded.

        Raises `DataLoss` with a number of `recovery_cases` at the first row that does not continue
        the journal, and at the end if it stops short of the shard row.
        """

    async def commit(
        self, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int] = NO_CEILINGS
    ) -> None:
        """Stores rows of any shards, at most one a shard, durably and all or nothing.

        `id_ceilings` (shard → new ceiling) rides in the same transaction; a ceiling never falls.
        Returns after the fsync. Raises `Fenced`, `CommitRefused` or `CommitUnknown`.
        """

    async def resolve(self, shard: int, epoch: int, offset: int, chain: int) -> bool:
        """Returns whether a row whose commit was unknown is stored, durably.

        False: it is not and never will be, and the same row may be committed again. Raises `Fenced`
        if the shard row is neither there nor where it was before, and `CommitUnknown` if the store
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
        """Writes one slice of a checkpoint; nothing of it is visible before `finish_checkpoint`.

        `generation` is the shard's plus one, else `Fenced`. `removals` are keys whose item ended; a
        key that was never stored does no harm. What comes later in a generation counts: who gives
        up a checkpoint half-way writes or removes all of it again with the next. Raises as
        `commit`.
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
        """Writes the last slice and makes the generation the visible one, in one transaction.

        From then on items hold all facts up to `offset`, where the journal's chain was `chain`.
        Call `truncate` next. Raises as `commit`.
        """

    async def drop_staged(self, shard: int) -> None:
        """Deletes what an unfinished checkpoint staged: its pages are free for the journal then.
        Takes all of the reserve if it has to. Raises as `commit`."""

    async def truncate(self, shard: int, limit_rows: int) -> int:
        """Deletes a slice of what the last checkpoint made superfluous: item versions, then journal
        rows.

        Takes at most `limit_rows` rows, fewer if they are large. Returns how many are known to
        remain, counted no further than `limit_rows`; 0 when it is done.
        """

    async def close(self) -> None:
        """Closes files and lock; may be called twice, or without `open`."""
