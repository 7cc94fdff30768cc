"""Batches: jobs of any queues that are counted together, and jobs that are pushed as they end.

A batch is in its *home* shard, which its id names as that of a job names its own. Jobs carry the id
of their batch among the options that they share, so that a lot of a million members stays a lot:

    shard of the member                          home shard of the batch

      LotPushed, JobsPushed: new members  ─────▶   BatchesJoined, in the same commit
      any fact that ends members
        adds to `unsent`, by batch
      BatchCountsSent, with a message     ─────▶   BatchesCounted

In the home shard itself both counts change in the very `apply` of the fact that pushes or ends the
members. Changes are signed: a member that is retried counts out again.

A batch is complete once it is closed and all members have ended. Whatever fact makes it so, or is
the first to count a dead member, leaves the batch in `due`; `decide/batches.py` pushes the
callbacks in the same commit, together with `BatchCalled`, which keeps them from being pushed again.
A batch in another one is in the same shard, and counts there as one member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple

from jobline_server.engine.values import JobOptions, JobState

# What the counts of a batch take in an outbox.
COUNTS_BYTES = 32


class MemberEnd(IntEnum):
    """How a member ended: the index of its count."""

    DONE = 0
    DEAD = 1
    CANCELLED = 2
    EXPIRED = 3
    DELETED = 4


END_OF_STATE = {
    JobState.COMPLETED: MemberEnd.DONE,
    JobState.DEAD: MemberEnd.DEAD,
    JobState.CANCELLED: MemberEnd.CANCELLED,
    JobState.EXPIRED: MemberEnd.EXPIRED,
}

# Enum attribute access is slow before Python 3.12.
_DONE, _DEAD = MemberEnd.DONE, MemberEnd.DEAD


class BatchCall(IntFlag):
    """Callbacks of a batch; stored by number."""

    NONE = 0
    SUCCESS = 1
    COMPLETE = 2
    FIRST_DEATH = 4


@dataclass(frozen=True, slots=True)
class Callback:
    """A job that a batch pushes. `shard` is that of its queue."""

    queue: str
    shard: int
    options: JobOptions
    payload: bytes = b""
    group: str = ""
    unique_key: str = ""
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """What a batch was created with. `parent` is the batch that it is a member of; 0: none."""

    name: str = ""
    tags: tuple[str, ...] = ()
    parent: int = 0
    request_id: str = ""
    on_success: Callback | None = None
    on_complete: Callback | None = None
    on_first_death: Callback | None = None

    def held_bytes(self) -> int:
        """Returns the bytes of the payloads of its callbacks, which wait with it."""
        callbacks = (self.on_success, self.on_complete, self.on_first_death)
        return sum(len(each.payload) for each in callbacks if each is not None)

    def callbacks(self, calls: BatchCall) -> Iterator[Callback]:
        """Yields the callbacks that exist of those that are due, first deaths first."""
        if calls & BatchCall.FIRST_DEATH and self.on_first_death is not None:
            yield self.on_first_death
        if calls & BatchCall.SUCCESS and self.on_success is not None:
            yield self.on_success
        if calls & BatchCall.COMPLETE and self.on_complete is not None:
            yield self.on_complete


class EndCounts:
    """How many members ended in which way, or by how much that changed. `has_died`: a member died,
    even if it was put back since.
    """

    __slots__ = ("by_end", "has_died", "stored")

    def __init__(self, by_end: Iterable[int] = (0, 0, 0, 0, 0), *, has_died: bool = False) -> None:
        self.by_end = list(by_end)
        self.has_died = has_died
        # ----
        self.stored = False

    def add(self, end: MemberEnd, count: int) -> None:
        """Counts members in; out if `count` is negative."""
        self.by_end[end] += count
        if end is _DEAD and count > 0:
            self.has_died = True

    def frozen(self) -> BatchCount:
        """Returns a value of the counts."""
        return BatchCount(tuple(self.by_end), self.has_died)


class BatchCount(NamedTuple):
    """Changes of the counts of one batch; see `EndCounts`."""

    by_end: tuple[int, ...]
    has_died: bool = False


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The message that tells a home shard what became of members in another shard."""

    ids: tuple[int, ...]
    counts: tuple[BatchCount, ...]

    def jobs(self) -> int:
        """Returns the number of its jobs: it pushes none."""
        return 0

    def payload_bytes(self) -> int:
        """Returns the bytes that it takes in an outbox."""
        return COUNTS_BYTES * len(self.ids)


class Batch:
    """A batch. `total` counts its members, `ends` those that have ended."""

    __slots__ = (
        "called",
        "cancel_reason",
        "cancelled_by",
        "cancelled_ms",
        "closed_ms",
        "completed_ms",
        "created_ms",
        "ends",
        "id",
        "outcome",
        "spec",
        "stored",
        "total",
    )

    def __init__(self, batch_id: int, spec: BatchSpec, created_ms: int) -> None:
        self.id = batch_id
        self.spec = spec
        self.created_ms = created_ms
        self.closed_ms = self.completed_ms = self.cancelled_ms = 0
        self.cancelled_by = self.cancel_reason = ""
        self.total = 0
        self.ends = EndCounts()
        self.called = BatchCall.NONE
        # ----
        self.outcome = _DONE
        """How it counts in the batch that it is a member of, once it is complete."""
        self.stored = False

    def pending(self) -> int:
        """Returns how many members have not ended."""
        return self.total - sum(self.ends.by_end)

    def is_over(self) -> bool:
        """Returns whether it is closed and all members have ended."""
        return bool(self.closed_ms) and self.pending() <= 0

    def takes_members(self) -> bool:
        """Returns whether jobs may become members."""
        return not self.completed_ms and not self.cancelled_ms

    def final_outcome(self) -> MemberEnd:
        """Returns how it counts as a member: as its worst end."""
        _, dead, cancelled, expired, deleted = self.ends.by_end
        if dead > 0:
            return MemberEnd.DEAD
        if cancelled > 0:
            return MemberEnd.CANCELLED
        if expired > 0:
            return MemberEnd.EXPIRED
        return MemberEnd.DELETED if deleted > 0 else _DONE

    def calls_due(self) -> BatchCall:
        """Returns the callbacks that are to be pushed and were not."""
        calls = BatchCall.FIRST_DEATH if self.ends.has_died else BatchCall.NONE
        if self.completed_ms:
            calls |= BatchCall.COMPLETE
            if self.outcome is _DONE:
                calls |= BatchCall.SUCCESS
        return calls & ~self.called
