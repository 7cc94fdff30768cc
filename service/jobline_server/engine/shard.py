"""A shard: the machine around its state, and the only way in which facts change it.

`emit` records a fact and applies it at once, so that the next item of the same batch sees it.
Recovery calls `replay` with the facts of the journal, which end in the same `apply`. Nothing here
decides anything.

What is recorded gathers in `entries` until the journal takes it; the offset it will have there is
`next_offset`, and what a fact makes ready carries that offset, so that no lane hands it out before
it is on disk. All facts gather in `applied`, with their offsets and effects, until the runtime
drains them.
"""

from __future__ import annotations

from jobline_server.engine.apply import apply
from jobline_server.engine.effects import Applied, Effect
from jobline_server.engine.entries import Fact
from jobline_server.engine.state import Load, ShardState


class Shard(ShardState):
    """A shard at work."""

    def __init__(self, number: int, *, epoch: int, next_sequence: int = 1, load: Load) -> None:
        super().__init__(number, epoch=epoch, next_sequence=next_sequence, load=load)
        self.entries: list[Fact] = []
        self.applied: list[Applied] = []

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it. A volatile one, of jobs that are never written, is only
        applied. One that `apply` refuses is not recorded: no recovery could apply it either.
        """
        offset = 0 if volatile else self.next_offset
        effects = self._apply(fact, offset)
        if offset:
            self.entries.append(fact)
        self.applied.append(Applied(fact, offset, effects))

    def replay(self, fact: Fact, offset: int) -> list[Effect]:
        """Applies a fact of the journal; returns its effects."""
        return self._apply(fact, offset)

    def _apply(self, fact: Fact, offset: int) -> list[Effect]:
        effects: list[Effect] = []
        self.effects = effects
        apply(self, fact, offset)
        # They hold jobs that ended: whoever drains them lets those go, and not the next fact.
        self.effects = []
        return effects

    def take_entries(self) -> list[Fact]:
        """Hands over what was recorded; what is recorded from now on belongs to the next offset."""
        entries, self.entries = self.entries, []
        if entries:
            self.next_offset += 1
        return entries

    def take_applied(self) -> list[Applied]:
        """Hands over all facts since the last call, in order, with their effects."""
        applied, self.applied = self.applied, []
        return applied

    def has_uncommitted(self) -> bool:
        """Whether anything that was decided is not on disk yet."""
        return bool(self.entries) or self.next_offset > self.committed + 1
