"""The ring of one queue: the consumers that wait there by kind, and in which order they are next.

Consumers of one kind may have the same jobs. If one of them finds none, the others need not be
asked: a round leaves out a whole kind in one step, however many consumers it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

from jobline_server.dispatch.consumer import Consumer, Kind, Room, is_some

# Obsolete entries allowed in the heap of a ring, beyond one per kind.
FIRSTS_SPARE = 16
# Up to so many kinds are asked one by one: that costs no more than to look which of them handle a
# name.
FEW_KINDS = 8
# Kinds that handle more names are looked up by none of them: each costs some 200 bytes.
NAMES_INDEXED = 100

C = TypeVar("C", bound=Consumer)


class _Members(Generic[C]):
    """The consumers of one kind: how many wait, and the turns of those in the ring, in order.
    `is_noted` is whether the heap of the ring has an entry of it.
    """

    __slots__ = ("count", "is_noted", "kind", "turns")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0
        self.turns: OrderedDict[C, int] = OrderedDict()
        self.is_noted = False


class Ring(Generic[C]):
    """The consumers of one queue. `waiting` has all of them, the ring those with room; `on_full`
    is called with one that leaves the ring as it has none, until `put` brings it back.
    """

    __slots__ = ("_by_name", "_firsts", "_kinds", "_last", "_of_many", "_on_full", "waiting")

    def __init__(self, on_full: Callable[[C], None]) -> None:
        self.waiting: dict[C, _Members[C]] = {}
        self._on_full = on_full
        self._kinds: dict[Kind, _Members[C]] = {}
        # Kinds by the names that they handle, and those that handle any, or too many.
        self._by_name: dict[str, dict[_Members[C], None]] = {}
        self._of_many: dict[_Members[C], None] = {}
        # A heap of kinds by the turn of their first consumer, or by an earlier one.
        self._firsts: list[tuple[int, _Members[C]]] = []
        self._last = 0

    def join(self, consumer: C, kind: Kind) -> None:
        """Adds a consumer behind the others; joining twice does nothing."""
        if consumer in self.waiting:
            return
        members = self._kinds.get(kind)
        if members is None:
            members = self._kinds[kind] = _Members(kind)
            self._add_kind(members)
        members.count += 1
        self.waiting[consumer] = members
        self.put(consumer)

    def leave(self, consumer: C) -> None:
        """Removes a consumer; leaving twice does nothing."""
        members = self.waiting.pop(consumer, None)
        if members is None:
            return
        members.turns.pop(consumer, None)
        members.count -= 1
        if not members.count:
            del self._kinds[members.kind]
            self._drop_kind(members)

    def _add_kind(self, members: _Members[C]) -> None:
        names = members.kind.names
        if names is None or len(names) > NAMES_INDEXED:
            self._of_many[members] = None
            return
        for name in names:
            self._by_name.setdefault(name, {})[members] = None

    def _drop_kind(self, members: _Members[C]) -> None:
        if members in self._of_many:
            del self._of_many[members]
            return
        for name in members.kind.names or ():
            kinds = self._by_name[name]
            del kinds[members]
            if not kinds:
                del self._by_name[name]

    def put(self, consumer: C) -> None:
        """Puts a consumer that waits into the ring, behind the others."""
        members, firsts = self.waiting[consumer], self._firsts
        self._last += 1
        members.turns[consumer] = self._last
        if not members.is_noted:
            members.is_noted = True
            heappush(firsts, (self._last, members))
            if len(firsts) > 2 * len(self._kinds) + FIRSTS_SPARE:
                firsts[:] = [entry for entry in firsts if entry[1].count]
                heapify(firsts)

    def names(self) -> frozenset[str] | None:
        """Returns all names that its consumers handle; None: any."""
        handled: set[str] = set()
        for kind in self._kinds:
            if kind.names is None:
                return None
            handled |= kind.names
        return frozenset(handled)

    def handles(self, name: str) -> bool:
        """Returns whether any of its consumers handles a name."""
        return any(kind.names is None or name in kind.names for kind in self._kinds)

    def round(
        self, missed: Container[Kind], ready: Collection[str] | None = None
    ) -> Iterator[tuple[C, Room]]:
        """Yields the consumers with room, and the room they have, the next one first; each moves
        behind the others. Kinds that the caller adds to `missed` are left out from then on, and the
        consumer for which it does so keeps its place. So does who handles none of the names
        `ready`, and may be left out.
        """
        last, firsts = self._last, self._firsts
        some = None if ready is None else self._kinds_for(ready)
        if some is not None:
            # A heap of their own; their entries in that of all become earlier ones.
            firsts = [(next(iter(one.turns.values())), one) for one in some if one.turns]
            heapify(firsts)
        aside: list[tuple[int, _Members[C]]] = []
        try:
            while firsts and firsts[0][0] <= last:
                turn, members = firsts[0]
                turns = members.turns
                consumer = next(iter(turns), None)
                if consumer is None:
                    heappop(firsts)
                    if some is None:
                        members.is_noted = False
                elif turns[consumer] != turn:
                    heapreplace(firsts, (turns[consumer], members))
                elif members.kind in missed:
                    aside.append(heappop(firsts))
                elif not is_some(room := consumer.room()):
                    self._park(consumer, members)
                else:
                    self._last = turns[consumer] = self._last + 1
                    turns.move_to_end(consumer)
                    try:
                        yield consumer, room
                    finally:
                        if members.kind in missed and consumer in turns:
                            turns[consumer] = turn
                            turns.move_to_end(consumer, last=False)
        finally:
            for entry in aside:
                heappush(firsts, entry)

    def _kinds_for(self, names: Collection[str]) -> Collection[_Members[C]] | None:
        """Returns the kinds that may handle any of these names; None if those are all, or it
        costs more to tell.
        """
        every = len(self._kinds)
        if every <= FEW_KINDS:
            return None
        by_name, found, looked = self._by_name, self._of_many.copy(), 0
        # The smaller one is walked over.
        for name in names if len(names) <= len(by_name) else by_name:
            kinds = by_name.get(name)
            if kinds is not None and name in names:
                looked += len(kinds)
                if looked > every or len(kinds) + len(self._of_many) == every:
                    return None
                found |= kinds
        return found

    def share_of(self, ready: int) -> int:
        """Returns the equal share of `ready` jobs for each consumer with room, at least 1; 0 if
        none has room.
        """
        with_room, full = 0, []
        for members in self._kinds.values():
            for consumer in members.turns:
                if is_some(consumer.room()):
                    with_room += 1
                    if with_room >= ready:
                        break
                else:
                    full.append(consumer)
            if with_room >= ready:
                break
        for consumer in full:
            self._park(consumer, self.waiting[consumer])
        return max(-(-ready // with_room), 1) if with_room else 0

    def _park(self, consumer: C, members: _Members[C]) -> None:
        del members.turns[consumer]
        self._on_full(consumer)
