"""A shard: its state, and the two methods by which facts change it.

`emit` records a fact and applies it at once, so that the next item of a batch sees its effect.
Recovery calls `replay` with the facts of the journal; both call the same `apply`. Nothing here
decides.

Recorded facts collect in `entries` until the journal takes them. They get the offset `next_offset`
there; jobs that a fact makes READY carry it, so that they are not leased before they are on disk.
All facts collect in `applied`, with offsets and effects, until the runtime drains them.
"""

from __future__ import annotations

from jobline_server.engine.apply import apply
from jobline_server.engine.effects import Applied, Effect
from jobline_server.engine.entries import Fact
from jobline_server.engine.load import Load
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.state import ShardState


class Shard(ShardState):
    """The state of a shard with the facts that wait for the journal and for the runtime."""

    def __init__(self, number: int, *, epoch: int, next_sequence: int = 1, load: Load) -> None:
        super().__init__(number, epoch=epoch, next_sequence=next_sequence, load=load)
        self.entries: list[Fact] = []
        self.applied: list[Applied] = []

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it for the journal, unless it is volatile. A fact that `apply`
        rejects is not recorded: recovery could not apply it either.
        """
        offset = 0 if volatile else self.next_offset
        effects = self._apply(fact, offset)
        if offset:
            self.entries.append(fact)
        self.applied.append(Applied(fact, offset, effects))

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

    def take_entries(self) -> list[Fact]:
        """Removes and returns the recorded facts; later ones belong to the next offset."""
        entries, self.entries = self.entries, []
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
