"""What a commit takes of a shard, and where the shard's journal stands."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.effects import Applied, QueueWoken, Revoked
from jobline_server.engine.endings import Ending
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.storage.segments import KeySegments


class CommittedBatch:
    """What one commit did to one shard: facts in order with their effects, those of jobs that are
    never written among them. Without a commit (`is_commit` False) there are only such facts, and
    `offset` is that of the last commit.
    """

    __slots__ = ("applied", "endings", "is_commit", "offset", "revoked", "shard", "woken")

    def __init__(
        self, shard: Shard, offset: int, applied: list[Applied], *, is_commit: bool
    ) -> None:
        self.shard = shard
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
                else:
                    self.endings.append(effect)


@dataclass(slots=True)
class JournalPosition:
    """Where a shard's journal stands, and how far its ids are set aside. The bytes and rows are
    those since the last checkpoint, which was taken at `checkpoint_ms`.
    """

    chain: int
    id_ceiling: int
    generation: int
    checkpoint_offset: int
    checkpoint_ms: int
    segments: KeySegments
    journal_bytes: int = 0
    journal_rows: int = 0
