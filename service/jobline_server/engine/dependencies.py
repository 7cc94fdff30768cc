"""Dependencies: which jobs of a shard wait for which others, and which of those are over.

A job that depends on others, its *parents*, is BLOCKED; `Details.parents_left` has those of them
that are not over. `Awaited` is the other direction: a job that is waited for, by jobs of this
shard, by other shards that asked to be told of its end, or by both.

When a parent ends, its record notes how (`end`), and nothing else happens in that step: it may have
a hundred thousand children. They are told in slices (`decide/dependencies.py`), and then the record
forgets the end. So a record with an `end` is the proof that the parent is over, kept as long as
somebody has to be told.

A parent of another shard has a record here, too. Its shard has one with this shard's number in
`shards`, until this shard says that it waits no more: after it was told of an end, unless somebody
waits for a retry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from jobline_server.engine.changes import KindChanges
from jobline_server.engine.children import Children, in_parts
from jobline_server.engine.delayed import Delayed
from jobline_server.engine.tables import IdSet, IdTable
from jobline_server.engine.values import JobState, shard_of


class ParentEnd(IntEnum):
    """How the waiting for a parent ended; stored by number."""

    __hash__ = int.__hash__

    COMPLETED = 1
    DEAD = 2
    CANCELLED = 3
    EXPIRED = 4
    DELETED = 5
    TIMED_OUT = 6
    """No parent ended, but the time that the job may be BLOCKED."""


END_OF_STATE = {
    JobState.COMPLETED: ParentEnd.COMPLETED,
    JobState.DEAD: ParentEnd.DEAD,
    JobState.CANCELLED: ParentEnd.CANCELLED,
    JobState.EXPIRED: ParentEnd.EXPIRED,
}


class Awaited:
    """A job that is waited for."""

    __slots__ = ("children", "end", "shards", "stored", "volatile")

    def __init__(self) -> None:
        self.end: ParentEnd | None = None
        self.shards: tuple[int, ...] = ()
        # ----
        self.children = Children()
        """Its BLOCKED jobs of this shard, in the order of their pushes."""
        self.stored = False
        # Whether the end is that of a volatile job: after a restart the job is looked up.
        self.volatile = False

    def durable_end(self) -> ParentEnd | None:
        """Returns the end as a checkpoint keeps it."""
        return None if self.volatile else self.end

    def is_over(self) -> bool:
        """Returns whether nothing is left to keep."""
        return not (self.children or self.shards or self.end)


class Told(NamedTuple):
    """Children to tell of the end of a parent; `is_last` if there are no others. `shards` are to be
    told then.
    """

    parent: int
    end: ParentEnd
    shards: tuple[int, ...]
    children: list[int]
    is_last: bool


class Dependencies:
    """The jobs that are waited for, by id.

    `pending` are those with an `end`; `to_look_up` are those that are not live here, and whose end
    nobody has told yet: the runtime looks them up. `ended` are jobs that ended and still have a
    record: somebody waits for a retry, or a shard has not said yet that it waits no more.
    `unawaited` are jobs of other shards that nobody here waits for any more, though none was told
    of their end: those shards are to be told so. None is left after a start: all are looked up.
    """

    __slots__ = (
        "_changes",
        "_walked",
        "_walking",
        "awaited",
        "has_any",
        "edges",
        "ended",
        "pending",
        "timeouts",
        "to_look_up",
        "unawaited",
    )

    def __init__(self, changes: KindChanges[IdSet]) -> None:
        self.awaited: IdTable[Awaited] = IdTable()
        # ----
        self.has_any = False
        """Whether any job is waited for, or any shard is to be told: cheap to test."""
        self._changes = changes
        self.edges = 0
        self.pending: deque[int] = deque()
        self.timeouts = Delayed()
        self.to_look_up: dict[int, None] = {}
        self.ended: dict[int, None] = {}
        self.unawaited: dict[int, None] = {}
        self._walking = 0
        self._walked: deque[int] = deque()

    def record(self, parent: int) -> Awaited:
        """Returns the record of a job, created if it does not exist."""
        found = self.awaited.find(parent)
        return self._add_record(parent) if found is None else found

    def _add_record(self, parent: int) -> Awaited:
        record = self.awaited[parent] = Awaited()
        self.has_any = True
        return record

    def wait(self, children: Sequence[int], parents: Collection[int]) -> None:
        """Notes that BLOCKED jobs wait for others, all for the same ones."""
        records, _ = self.awaited.find_many([*parents])
        only = children[0] if len(children) == 1 else None
        parts = in_parts(children) if only is None else []
        for parent, found in zip(parents, records, strict=True):
            record = self._add_record(parent) if found is None else found
            if only is None:
                record.children.add_parts(parts)
            else:
                record.children.add(only)
        self.edges += len(parents) * len(children)

    def stop_waiting(self, child: int, parents: Collection[int]) -> None:
        """Notes that a job waits for others no more."""
        for parent in parents:
            found = self.awaited[parent]
            found.children.remove(child)
            if found.is_over():
                if shard_of(parent) != shard_of(child):
                    self.unawaited[parent] = None
                self._drop(parent)
        self.edges -= len(parents)

    def note_told(self, parents: Iterable[int]) -> None:
        """Notes that the shards of jobs were told that nobody waits for these any more."""
        for parent in parents:
            self.unawaited.pop(parent, None)
        self.has_any = bool(self.awaited or self.unawaited)

    def note_end(self, parent: int, end: ParentEnd, *, volatile: bool = False) -> None:
        """Notes that a job is over, if anybody waits for it."""
        found = self.awaited.find(parent)
        if found is None:
            return
        if found.end is None:
            self.pending.append(parent)
        elif self._walking == parent:
            # It was retried, and ended another time before all were told: they are told this.
            self._walking = 0
        found.end, found.volatile = end, volatile
        self.to_look_up.pop(parent, None)
        self._note(parent, found)

    def forget_end(self, parent: int) -> None:
        """Notes that all have been told of the end of a job."""
        found = self.awaited.find(parent)
        if found is None or found.end is None:
            return
        found.end, found.volatile = None, False
        self.ended[parent] = None
        self._note(parent, found)
        self._drop_if_over(parent, found)
        if self._walking == parent:
            self._walking = 0
        while self.pending and not self._is_pending(self.pending[0]):
            self.pending.popleft()

    def _is_pending(self, parent: int) -> bool:
        found = self.awaited.find(parent)
        return found is not None and found.end is not None

    def add_shard(self, parent: int, shard: int) -> None:
        """Notes that a shard is to be told of the end of a job."""
        found = self.record(parent)
        found.shards = (*found.shards, shard)
        self._note(parent, found)

    def remove_shard(self, parent: int, shard: int) -> None:
        """Notes that a shard waits for a job no more."""
        found = self.awaited[parent]
        found.shards = tuple([one for one in found.shards if one != shard])
        self._note(parent, found)
        self._drop_if_over(parent, found)

    def add_stored(self, parent: int, end: ParentEnd | None, shards: tuple[int, ...]) -> None:
        """Adds what a checkpoint keeps of a job."""
        found = self.record(parent)
        found.end, found.shards, found.stored = end, shards, True
        if end is not None:
            self.pending.append(parent)

    # Telling children. How far that has come is no state: a child that was told waits no more.

    def next_told(self, limit: int, cost: Callable[[int, int, ParentEnd], int]) -> list[Told]:
        """Returns the next children to tell, by parent, until they cost more than `limit`: each as
        much as `cost` says of it, the parent and the end.
        """
        told: dict[int, Told] = {}
        for parent in self.pending:
            if limit <= 0:
                break
            record = self.awaited.find(parent)
            if record is None or record.end is None or parent in told:
                continue
            if self._walking != parent:
                self._walking, self._walked = parent, deque(record.children)
            children: list[int] = []
            while self._walked and limit > 0:
                children.append(self._walked.popleft())
                limit -= cost(children[-1], parent, record.end)
            limit -= 1
            is_last = not self._walked
            told[parent] = Told(parent, record.end, record.shards, children, is_last)
            if not is_last:
                break
            self._walking = 0
        return list(told.values())

    def tell_again(self) -> None:
        """Begins again with the first child: telling them failed."""
        self._walking = 0

    def find_ended(self, state_of: Callable[[int], JobState | None]) -> None:
        """Has looked up, after recovery, what became of jobs that others wait for and that are not
        live here.
        """
        self.note_told([*self.unawaited])
        for parent, record in self.awaited.items():
            if record.end is None and state_of(parent) is None:
                self.ended[parent] = None
                self.to_look_up[parent] = None

    def look_up(self, parents: Iterable[int]) -> None:
        """Has the runtime look up what became of jobs, if anybody waits for them."""
        for parent in parents:
            record = self.awaited.find(parent)
            if record is not None and record.end is None:
                self.to_look_up[parent] = None

    def due_look_ups(self, limit: int) -> list[int]:
        """Returns some of the jobs to look up."""
        return list(islice(self.to_look_up, limit))

    def looked_up(self, parents: Iterable[int]) -> None:
        """Notes that jobs have been looked up."""
        for parent in parents:
            self.to_look_up.pop(parent, None)

    def _note(self, parent: int, found: Awaited) -> None:
        """Has the next checkpoint write, or delete, what is durable of a record."""
        if found.durable_end() or found.shards:
            self._changes.to_write.add(parent)
            return
        self._changes.to_write.discard(parent)
        if found.stored:
            found.stored = False
            self._changes.to_delete.append(parent)

    def _drop_if_over(self, parent: int, found: Awaited) -> None:
        if found.is_over():
            self._drop(parent)

    def _drop(self, parent: int) -> None:
        del self.awaited[parent]
        self.has_any = bool(self.awaited or self.unawaited)
        self.to_look_up.pop(parent, None)
        self.ended.pop(parent, None)
