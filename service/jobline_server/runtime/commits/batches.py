"""What a commit takes of a shard, and where the shard's journal stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobline_server.engine.endings import Ending, Happened
from jobline_server.engine.shard import Shard
from jobline_server.storage.segments import KeySegments


@dataclass(slots=True)
class CommittedBatch:
    """What one commit did to one shard; and `volatile`, what happened meanwhile to jobs that are
    never written. Without `happened` there was no commit: `offset` is that of the last one.
    """

    shard: Shard
    offset: int
    happened: Sequence[Happened]
    endings: Sequence[Ending]
    volatile: list[Happened]


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
