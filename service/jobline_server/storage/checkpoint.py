"""Checkpoint: a shard's state as rows, written in slices while the shard goes on.

The shard notes what changed since the last checkpoint, and which items are gone that a checkpoint
had written (`shard.changes`). Slices take from these notes, a bounded piece at a time, one kind
after the other in the order of `KINDS`. What changes again is noted again, and an item that is gone
after its slice is noted to be removed. `finish` takes all that is left at once. So its rows,
together with those of the slices, are the state of the shard at one moment: that of its last taken
entries. A job that begins and ends between two checkpoints is in no note and costs no row.

    checkpoint = Checkpoint(shard, segments)
    while piece := checkpoint.slice():
        await store.stage(…, piece.rows, piece.removals)
    shard.take_entries() → commit                  # in the same step of the loop as `finish`
    last = checkpoint.finish()                     # last.offset is that commit's offset
    await the commit, await store.finish_checkpoint(…, last.offset, chain, last.rows, last.removals)

The ended store must hold all endings up to `last.offset`, durably, before `finish_checkpoint`: the
journal that has them is truncated then.

If a write finds no room, `abandon` gives back all notes that were taken, so that the next
checkpoint writes or removes everything again, over what was staged. A crash needs nothing: the
store drops what was staged, and the journal after the last finished checkpoint makes the notes
anew.

This module does not wait, and does not decide when a checkpoint is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine import limits
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds import KINDS
from jobline_server.storage.kinds.table import KindSlices, Slice
from jobline_server.storage.segments import KeySegments

# Slices pass over everything, then over what changed meanwhile, and so on while that is much: each
# pass is to be this much smaller than the one before. A shard may change faster than it is written:
# after so many passes that were not, slices double with each, until what is left fits into one.
PASS_SHRINKS = 2 / 3
OUTRUN_MAX = 3
# A pass that missed it by this much counts. Single slices are no exact measure.
_NEARLY = 5 / 4


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pass is, the one of this number, in notes: how many it has taken, and how many came
    meanwhile. `outrun` is how many passes before it came too late to shrink.
    """

    passes: int
    taken: int
    changed: int
    outrun: int = 0


@dataclass(slots=True)
class LastSlice(Slice):
    """The last slice. The checkpoint is the shard's state after the journal row `offset`."""

    offset: int = 0


class Checkpoint:
    """One checkpoint of one shard, from its first slice to `finish` or `abandon`."""

    __slots__ = ("_kinds", "_outrun", "_passes", "_shard", "_size", "_to_go")

    def __init__(self, shard: Shard, segments: KeySegments) -> None:
        self._shard = shard
        self._kinds: list[KindSlices] = [kind.slices(shard, segments) for kind in KINDS]
        self._passes = 0
        self._outrun = 0
        self._size = 0
        self._to_go = 0

    @property
    def progress(self) -> Progress:
        """Returns how far the pass under way is."""
        changed = max(self._noted() - max(self._to_go, 0), 0)
        return Progress(self._passes, self._size - self._to_go, changed, self._outrun)

    def slice(self, budget_items: int = limits.SLICE_ITEMS) -> Slice:
        """Takes a slice of about this many items, or more if the shard changes too fast. After an
        empty slice, call `finish`.
        """
        piece = Slice()
        noted = self._noted()
        if is_new_pass := self._to_go <= 0:
            self._begin_pass(noted)
        budget_items <<= max(self._outrun - OUTRUN_MAX, 0)
        if is_new_pass and noted <= budget_items and self._cost() <= budget_items:
            self._to_go = 0
            return piece
        # Keys that were replaced since need no row, so a slice's notes may yield none.
        while noted and not piece:
            self._fill(piece, budget_items)
            left = self._noted()
            self._to_go -= noted - left
            noted = left
        return piece

    def finish(self) -> LastSlice:
        """Takes all that is left. The shard's entries must have been taken in the same step."""
        shard = self._shard
        if shard.entries:
            raise RuntimeError("a checkpoint ends where the journal does: take the entries first")
        last = LastSlice(offset=shard.next_offset - 1)
        self._fill(last, float("inf"))
        for kind in self._kinds:
            kind.finish(last)
        return last

    def abandon(self) -> None:
        """Gives all notes back: this checkpoint is not finished."""
        for kind in self._kinds:
            kind.give_back()

    def _begin_pass(self, noted: int) -> None:
        self._outrun += self._passes > 0 and noted > PASS_SHRINKS * _NEARLY * self._size
        self._passes += 1
        self._size = self._to_go = noted

    def _noted(self) -> int:
        """Returns how many notes there are on the shard."""
        return sum([kind.noted() for kind in self._kinds])

    def _cost(self) -> int:
        """Returns what the notes will cost, in items of a slice's budget."""
        return sum([kind.cost() for kind in self._kinds])

    def _fill(self, piece: Slice, budget: float) -> None:
        """Takes notes of one kind after the other while the budget lasts."""
        piece.budget = budget
        for kind in self._kinds:
            kind.take(piece)
