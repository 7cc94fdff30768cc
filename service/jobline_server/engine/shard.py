"""A shard: its state, and the two methods by which facts change it.

`emit` records a fact and applies it at once, so that the next item of a batch sees its effect.
Recovery calls `replay` with the facts of the journal; both call the same `apply`. Nothing here
decides.

Recorded facts collect in `entries` until the journal takes them. They get the offset `next_offset`
there; jobs that a fact makes READY carry it, so that they are not leased before they are on disk.
All facts collect in `applied`, with offsets and effects, until the runtime drains them. What is too
much for one row of the journal takes several offsets: a fact never does, nor a decision.
"""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine.apply import apply
from jobline_server.engine.effects import Applied, Effect
from jobline_server.engine.entries import Fact
from jobline_server.engine.entry_bytes import BYTES_OF, size_of
from jobline_server.engine.load import Load
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.state import ShardState


class Entry(NamedTuple):
    """What one row of the journal has: recorded facts, and all that were applied meanwhile."""

    offset: int
    facts: list[Fact]
    applied: list[Applied]


class Shard(ShardState):
    """The state of a shard with the facts that wait for the journal and for the runtime."""

    def __init__(self, number: int, *, epoch: int, next_sequence: int = 1, load: Load) -> None:
        super().__init__(number, epoch=epoch, next_sequence=next_sequence, load=load)
        self.entries: list[Fact] = []
        self.applied: list[Applied] = []
        # Of those before: entries that are full.
        self.full: list[Entry] = []
        # About what `entries` take, and whether that is all that they may take.
        self.entry_bytes = 0
        self._is_full = False

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it for the journal, unless it is volatile. A fact that `apply`
        rejects is not recorded: recovery could not apply it either.
        """
        if self._is_full and not volatile:
            self._begin_entry(fact)
            return
        offset = 0 if volatile else self.next_offset
        effects = self._apply(fact, offset)
        if offset:
            self.entries.append(fact)
            bytes_of = BYTES_OF.get(type(fact), size_of)
            if bytes_of is not None:
                self.entry_bytes += bytes_of(fact)
        self.applied.append(Applied(fact, offset, effects))

    def _begin_entry(self, fact: Fact) -> None:
        """Records a fact as the first of a new entry; none begins if `apply` rejects it."""
        last = self._take()
        self.full.append(last)
        try:
            self.emit(fact)
        except BaseException:
            self.full.pop()
            self.next_offset, self.entries, self._is_full = last.offset, last.facts, True
            self.applied = last.applied + self.applied
            raise

    def recorded(self) -> int:
        """Returns how many facts wait for the journal."""
        return len(self.entries) + sum([len(entry.facts) for entry in self.full])

    def notice(self, notice: DuplicatesFound) -> None:
        """Has watchers notified of something that changed nothing, after the facts so far."""
        self.applied.append(Applied(notice, 0, []))

    def replay(self, fact: Fact, offset: int) -> list[Effect]:
        """Applies a fact of the journal; returns its effects."""
        return self._apply(fact, offset)

    def _apply(self, fact: Fact, offset: int) -> list[Effect]:
        effects: list[Effect] = []
        self.effects = effects
        self.offset = offset
        self.at_ms = fact.at_ms
        apply(self, fact, offset)
        if self.resting:
            self._forget_idle_tenants()
        # Effects hold ended jobs: they must be freed when drained, not when the next fact comes.
        self.effects = []
        return effects

    def _forget_idle_tenants(self) -> None:
        resting, self.resting[:] = list(self.resting), []
        for fair in resting:
            fair.forget_idle()

    def end_entry(self) -> None:
        """Has the next fact begin a new one, so that `entries` always has the last."""
        self._is_full = True

    def take_all(self) -> list[Entry]:
        """Removes and returns what was recorded: more than one entry if that is a lot. Later facts
        belong to the next offset.
        """
        full, self.full = self.full, []
        return [*full, self._take()]

    def _take(self) -> Entry:
        taken = Entry(self.next_offset, self.entries, self.applied)
        self.next_offset += bool(self.entries)
        self.entries, self.applied, self.entry_bytes, self._is_full = [], [], 0, False
        return taken

    def take_entries(self) -> list[Fact]:
        """Removes and returns the recorded facts alone; later ones belong to the next offset."""
        entries, self.entries, self.entry_bytes = self.entries, [], 0
        if entries:
            self.next_offset += 1
        return entries

    def take_applied(self) -> list[Applied]:
        """Removes and returns all facts since the last call, in order, with their effects."""
        applied, self.applied = self.applied, []
        return applied

    def has_uncommitted(self) -> bool:
        """Returns whether any recorded fact is not on disk yet."""
        return bool(self.entries) or self.next_offset > self.committed + 1
