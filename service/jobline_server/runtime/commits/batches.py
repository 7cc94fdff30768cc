"""What one commit takes of a shard."""

from __future__ import annotations

from jobline_server.engine.effects import NO_ENDINGS, Applied, QueueWoken, Revoked
from jobline_server.engine.endings import Ending
from jobline_server.engine.queue import Queue
from jobline_server.runtime.slots import ShardSlot


class CommittedBatch:
    """The facts that one commit took of a shard, in order, with their effects; those of jobs that
    are never written are among them. Without a commit (`is_commit` False) there are only such
    facts, and `offset` is that of the last commit.
    """

    __slots__ = ("applied", "endings", "is_commit", "offset", "revoked", "shard", "slot", "woken")

    def __init__(
        self, slot: ShardSlot, offset: int, applied: list[Applied], *, is_commit: bool
    ) -> None:
        self.slot = slot
        self.shard = slot.shard
        self.offset = offset
        self.applied = applied
        self.is_commit = is_commit
        self.endings: list[Ending] = []
        self.revoked: list[Revoked] = []
        self.woken: dict[Queue, None] = {}
        for one in applied:
            for effect in one.effects:
                if isinstance(effect, QueueWoken):
                    self.woken[effect.queue] = None
                elif isinstance(effect, Revoked):
                    self.revoked.append(effect)
                elif type(effect) not in NO_ENDINGS:
                    self.endings.append(effect)  # type: ignore[arg-type]  # all others are there
