"""A shard: the machine around its state, and the door through which facts change it.

`emit` records a fact and applies it at once, so that the next item of the same batch sees it.
Recovery calls `replay` with the facts of the journal, which end in the same `apply`. Nothing here
decides anything.

What is recorded gathers in `entries` until the journal takes it; the offset it will have there is
`next_offset`, and what a fact makes ready carries that offset, so that no lane hands it out before
it is on disk. What the outside has to be told gathers in `happened`, `ended` and `revoked`.
"""

from __future__ import annotations

from jobline_server.engine.apply import apply
from jobline_server.engine.endings import Ending, Happened
from jobline_server.engine.entries import Fact
from jobline_server.engine.state import ShardState


class Shard(ShardState):
    """A shard at work."""

    def emit(self, fact: Fact, *, volatile: bool = False) -> None:
        """Applies a fact and records it. A volatile one, of jobs that are never written, is only
        applied. One that `apply` refuses is not recorded: no recovery could apply it either.
        """
        told = len(self.ended)
        apply(self, fact, 0 if volatile else self.next_offset)
        if volatile:
            self.happened_volatile.append((fact, self.ended[told:]))
        else:
            self.entries.append(fact)
            self.happened.append((fact, self.ended[told:]))

    def replay(self, fact: Fact, offset: int) -> None:
        """Applies a fact of the journal."""
        apply(self, fact, offset)

    def take_entries(self) -> list[Fact]:
        """Hands over what was recorded; what is recorded from now on belongs to the next offset."""
        entries, self.entries = self.entries, []
        if entries:
            self.next_offset += 1
        return entries

    def take_happened(self) -> tuple[list[Happened], list[Happened]]:
        """Hands over what happened, in order: what the journal takes, and what it does not."""
        happened, self.happened = self.happened, []
        volatile, self.happened_volatile = self.happened_volatile, []
        return happened, volatile

    def take_ended(self) -> list[Ending]:
        """Hands over what ended, in order."""
        ended, self.ended = self.ended, []
        return ended
