"""Slots: the shards that this process has, each with all that the runtime keeps of it.

A slot is found by the number of its shard, by the name of a queue or by the id of a job. Not every
shard of the store need be here: what belongs to one that is not is refused with SHARD_UNAVAILABLE.

A shard fails alone: its slot is closed for good, and the others go on. Those who wait for its
commits are refused; those who keep something of it elsewhere are notified. Nothing here decides
anything, or knows what a fact means.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import shard_of
from jobline_server.runtime.health import ClosedShard, Health
from jobline_server.storage.segments import KeySegments
from jobline_server.telemetry.log import logger

LOG = logger("runtime")

# When a caller may try again, in milliseconds: a supervisor restarts a server in about a second.
RETRY_AFTER_MS = 1_000

Answer = tuple[asyncio.Future[Any], object]
"""A caller that waits for a commit, and the answer it gets after it."""


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


class ShardSlot:
    """A shard, the position of its journal, the callers that wait for its commits, its queues that
    may have jobs to dispatch, and how it is doing.
    """

    __slots__ = (
        "committing",
        "health",
        "held_back",
        "is_closed",
        "number",
        "position",
        "shard",
        "waiting",
        "woken",
    )

    def __init__(self, shard: Shard, position: JournalPosition) -> None:
        self.number = shard.number
        self.shard = shard
        self.position = position
        self.health = Health.OPEN
        self.is_closed = False
        self.waiting: list[Answer] = []
        """Answers that the next commit allows."""
        self.committing: list[Answer] | None = None
        """Answers that the commit under way allows; None if it has nothing of this shard."""
        self.held_back: deque[Any] = deque()
        """Hand-outs that wait for a commit (`held_back.HandOut`), in order."""
        self.woken: dict[Queue, None] = {}
        """Queues to look at when jobs are dispatched next, in this order."""


class Owners(NamedTuple):
    """Indexes of ids: of those in shards that are `here`, by slot; of those in shards that are
    `elsewhere`; and of those that no shard has given out.
    """

    here: dict[ShardSlot, list[int]]
    elsewhere: list[int]
    nowhere: list[int]


class ShardSlots:
    """The slots of this process. `total` is the number of shards that the store has: a queue is in
    shard `crc32(name) mod total`.
    """

    def __init__(self, slots: Iterable[ShardSlot], total: int) -> None:
        self.total = total
        self.closed: dict[int, ClosedShard] = {}
        """Shards that were lost, in this order."""
        self._by_number = {slot.number: slot for slot in slots}
        self.is_partial = len(self._by_number) < total
        """Whether any shard of the store is not here."""
        self.on_closed: Callable[[ShardSlot], None] = lambda _slot: None
        """Called after a slot was closed. Set by the core."""

    def __iter__(self) -> Iterator[ShardSlot]:
        return iter([*self._by_number.values()])

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def __getitem__(self, number: int) -> ShardSlot:
        """Returns the slot of a shard. Raises `Refused` if it is not here."""
        slot = self._by_number.get(number)
        if slot is None:
            raise self.refusal(number)
        return slot

    def of_queue(self, queue: str) -> ShardSlot:
        """Returns the slot that owns a queue, whether the queue exists or not. Raises `Refused` if
        it is not here.
        """
        slot = self._by_number.get(crc32(queue.encode()) % self.total)
        if slot is None:
            raise self.refusal(self.number_of(queue))
        return slot

    def number_of(self, queue: str) -> int:
        """Returns the number of the shard that owns a queue."""
        return crc32(queue.encode()) % self.total

    def find_by_queue(self, queue: str) -> ShardSlot | None:
        """Returns the slot that owns a queue; None if it is not here."""
        return self._by_number.get(self.number_of(queue))

    def find_queue(self, name: str) -> Queue | None:
        """Returns a queue; None if it does not exist, or is not here."""
        slot = self.find_by_queue(name)
        return None if slot is None else slot.shard.queues.get(name)

    def of_id(self, job_id: int) -> ShardSlot | None:
        """Returns the slot that owns an id; None for an id that no shard has given out. Raises
        `Refused` if the shard is not here.
        """
        number = shard_of(job_id)
        slot = self._by_number.get(number)
        if slot is None and number < self.total:
            raise self.refusal(number)
        return slot

    def find_by_id(self, job_id: int) -> ShardSlot | None:
        """Returns the slot that owns an id; None if there is none here."""
        return self._by_number.get(shard_of(job_id))

    def owners(self, ids: Iterable[int]) -> Iterator[tuple[ShardSlot, list[int]]]:
        """Yields the slots that own some of these ids, each with its own in order; those of shards
        that are not here are left out.
        """
        by_number: dict[int, list[int]] = {}
        for job_id in ids:
            by_number.setdefault(shard_of(job_id), []).append(job_id)
        for number, own in by_number.items():
            slot = self._by_number.get(number)
            if slot is not None:
                yield slot, own

    def single_owner(self, ids: Sequence[int]) -> ShardSlot | None:
        """Returns the slot that owns all of these ids, if there is one; ids of a shard are
        neighbours.
        """
        slot = self.find_by_id(min(ids))
        return slot if slot is self.find_by_id(max(ids)) else None

    def check_here(self, ids: Iterable[int]) -> None:
        """Raises `Refused` if any of these ids is in a shard that is not here."""
        if self.is_partial:
            for job_id in ids:
                self.of_id(job_id)

    def check_any_id(self, ids: Sequence[int]) -> None:
        """Raises `Refused` if none of these ids is in a shard that is here, and some in others."""
        owners = self.owners_of(ids)
        if owners.elsewhere and not owners.here:
            self.of_id(ids[owners.elsewhere[0]])

    def owners_of(self, ids: Iterable[int]) -> Owners:
        """Returns which slots own which of these ids."""
        owners = Owners({}, [], [])
        for index, job_id in enumerate(ids):
            number = shard_of(job_id)
            slot = self._by_number.get(number)
            if slot is not None:
                owners.here.setdefault(slot, []).append(index)
            elif number < self.total:
                owners.elsewhere.append(index)
            else:
                owners.nowhere.append(index)
        return owners

    def offsets(self) -> list[int]:
        """Returns the offset of the last commit of each shard of the store, as far as it is known
        here; 0 for one that never was here.
        """
        offsets = [0] * self.total
        for number, closed in self.closed.items():
            offsets[number] = closed.offset
        for number, slot in self._by_number.items():
            offsets[number] = slot.shard.committed
        return offsets

    def journal_bytes(self) -> int:
        """Returns the size of all journals together."""
        return sum(slot.position.journal_bytes for slot in self._by_number.values())

    def refusal(self, number: int) -> Refused:
        """Returns the refusal of what belongs to a shard that is not here."""
        no_more = " any more" if number in self.closed else ""
        return Refused(
            RefusalKind.SHARD_UNAVAILABLE,
            f"shard {number} is not served here{no_more}; others are",
            retry_after_ms=RETRY_AFTER_MS,
        )

    def check_any_queue(self, queues: Iterable[tuple[str, int]]) -> None:
        """Raises `Refused` if none of these queues, which are (name, weight), is here."""
        if self.is_partial:
            names = [name for name, _ in queues]
            if names and not any(map(self.find_by_queue, names)):
                self.of_queue(names[0])

    def close(self, slot: ShardSlot, health: Health, why: str) -> None:
        """Closes a slot for good: its shard failed. What was decided and not committed is void."""
        if slot.is_closed:
            return
        slot.is_closed, slot.health = True, health
        shard = slot.shard
        del self._by_number[slot.number]
        self.is_partial = True
        self.closed[slot.number] = ClosedShard(
            slot.number,
            shard.epoch,
            shard.committed,
            slot.position.checkpoint_offset,
            health,
            why,
        )
        LOG.critical("a shard is lost", shard=slot.number, health=health.value, why=why)
        shard.leave_load()
        slot.woken.clear()
        for future, _ in (*(slot.committing or ()), *slot.waiting):
            if not future.done():
                future.set_exception(self.refusal(slot.number))
        slot.waiting, slot.committing = [], None
        self.on_closed(slot)
