"""The shape of the table of kinds: a row, and what a checkpoint asks of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKey, ItemKind, ItemRow

# One job is one item of a slice's budget. A lot costs more by its payloads, a job by the jobs that
# it waits for, large blobs by their size, jobs in bundles, keys and removals less: measured, so
# that a slice of `limits.SLICE_ITEMS` takes 10 ms at most, of the loop as of the store, where
# commits wait for it.
PAYLOADS_AN_ITEM = 100
BUNDLED_AN_ITEM = 5
BYTES_AN_ITEM = 1_024
KEYS_AN_ITEM = 8
REMOVALS_AN_ITEM = 16
PARENTS_AN_ITEM = 100


@dataclass(slots=True)
class Slice:
    """A piece of a checkpoint to stage. `budget` is what it may still take, in items."""

    rows: list[ItemRow] = field(default_factory=list)
    removals: list[ItemKey] = field(default_factory=list)
    budget: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.rows or self.removals)


class KindSlices:
    """The part of one checkpoint that one kind has: takes notes off the shard, and remembers them
    in case it was in vain. A kind without notes is written whole in `finish`.
    """

    __slots__ = ()

    def noted(self) -> int:
        """Returns how many notes there are on the shard."""
        return 0

    def cost(self) -> int:
        """Returns what the notes will cost, in items of a slice's budget."""
        return self.noted()

    def take(self, piece: Slice) -> None:
        """Takes notes while the budget of the piece lasts."""

    def finish(self, last: Slice) -> None:
        """Adds what belongs to the last piece alone, once all notes are taken."""

    def give_back(self) -> None:
        """Gives all notes that were taken back to the shard."""


def _ignore_damaged(_loading: Loading, _key: int) -> None:
    """The item key of a damaged item needs no note: it is an id, which is not given out again."""


def _all_loaded(_loading: Loading) -> bool:
    """Items that need no other kind's are loaded by then."""
    return False


@dataclass(frozen=True, slots=True)
class DurableKind:
    """One kind of item. `load` takes a page of its items at a time: a million calls, one per item,
    would be seconds of a start. `note_damaged` is told of the key of an item that was set apart.
    `end_loading` is called once all items are there, and returns whether it had to set any apart.
    """

    kind: ItemKind
    load: Callable[[Loading, Iterator[ItemRow]], None]
    slices: Callable[[Shard, KeySegments], KindSlices]
    note_damaged: Callable[[Loading, int], None] = _ignore_damaged
    end_loading: Callable[[Loading], bool] = _all_loaded
