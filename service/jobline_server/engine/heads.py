"""Heads: lanes by what stands at their heads, where there are many of them.

To merge a few lanes is cheap, but a queue may have a lane for each of twenty thousand names, and
none but the first of them have what goes out next. So such lanes are kept in order of a bound: no
item of a lane comes before it. What leaves a lane only raises its head, and the bound follows when
the lane is next; what is put before its head is noted anew. So a hand-out costs what it brings,
however many lanes there are.

A lane that gave its head mostly goes behind all others, as what is pushed last is at the end of
each lane. So the order is that of a run, to which such a lane is appended, and a heap for the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from jobline_server.engine.lane import Lane, LaneItem

# Comes behind every order.
HIGHEST = 1 << 62

_Entry = tuple[int, int, Lane]
"""A bound, a number that no other has, and the lane."""
_Opened = tuple[int, int, Lane, LaneItem | None, Iterator[LaneItem]]
"""What comes behind the head of a lane that gave it: the order of its next item, a number that no
other has, the lane, the item, and what comes after that. Before anybody looked, the order is a
bound, and there is no item.
"""
_NOTHING: Iterator[LaneItem] = iter(())


class LaneHeads:
    """Lanes of one priority and size. Of a lane that was noted twice only the newest entry counts.
    A lane that has nothing ready, or whose gate is closed, goes when it is next.
    """

    __slots__ = ("_heap", "_newest", "_number", "_out", "_run")

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._number = 0
        self._newest: dict[Lane, int] = {}
        self._run: deque[_Entry] = deque()
        self._heap: list[_Entry] = []
        # What the last walk took out.
        self._out: list[tuple[int, Lane]] = []
        for lane in lanes:
            self.note(lane)
        self._run = deque(sorted([*self._run, *self._heap]))
        self._heap = []

    def __len__(self) -> int:
        """Returns the number of entries, those that do not count any more too."""
        return len(self._run) + len(self._heap) + len(self._out)

    def note(self, lane: Lane) -> None:
        """Notes a lane that is new, or has another head."""
        head = lane.head()
        if head is not None:
            self._number = self._newest[lane] = self._number + 1
            self._insert(head.order, self._number, lane)

    def durable(self, committed: int, payload_bytes_max: int | None = None) -> Iterator[LaneItem]:
        """Yields what may go out of all lanes, in order, each as far as it is on disk and not too
        large. Nothing may change meanwhile.
        """
        self._put_back()
        run, heap, out = self._run, self._heap, self._out
        given: list[tuple[int, Lane]] = []
        behind = _BehindHeads(committed, payload_bytes_max)
        # The order of the first item that is behind a head.
        least = HIGHEST
        while run or heap:
            if heap and (not run or heap[0] < run[0]):
                bound, number, lane = heappop(heap)
            else:
                bound, number, lane = run.popleft()
            head = self._head_of(number, lane)
            if head is None:
                continue
            order = head.order
            if order != bound:
                self._insert(order, number, lane)
                continue
            one = number, lane
            out.append(one)
            if least < order:
                behind.open(given)
                given = []
                yield from behind.up_to(order)
                least = behind.least()
            if head.offset > committed or (
                payload_bytes_max is not None and head.payload_bytes_max() > payload_bytes_max
            ):
                continue
            yield head
            given.append(one)
            second = lane.second()
            if second is not None and second.order < least:
                least = second.order
        behind.open(given)
        yield from behind.up_to(HIGHEST)

    def lanes_up_to(self, order: int) -> Iterator[Lane]:
        """Yields the lanes that may have an item up to this order, and looks at few others."""
        self._put_back()
        for bound, number, lane in self._run:
            if bound > order:
                break
            if self._newest.get(lane) == number:
                yield lane
        heap, at_next = self._heap, [0]
        while at_next:
            at = at_next.pop()
            if at < len(heap) and heap[at][0] <= order:
                _, number, lane = heap[at]
                if self._newest.get(lane) == number:
                    yield lane
                at_next += (2 * at + 1, 2 * at + 2)

    def _insert(self, bound: int, number: int, lane: Lane) -> None:
        run = self._run
        if not run or run[-1][0] <= bound:
            run.append((bound, number, lane))
        else:
            heappush(self._heap, (bound, number, lane))

    def _head_of(self, number: int, lane: Lane) -> LaneItem | None:
        """Returns the head of a lane; None if this entry is not its newest, or the lane may give
        nothing. Such an entry is of no use any more.
        """
        if self._newest.get(lane) != number:
            return None
        head = lane.head() if lane.ready and not lane.opens_ms else None
        if head is None:
            del self._newest[lane]
        return head

    def _put_back(self) -> None:
        """Inserts the lanes that the last walk took out, by their heads of now."""
        out, self._out = self._out, []
        for number, lane in out:
            head = self._head_of(number, lane)
            if head is not None:
                self._insert(head.order, number, lane)


class _BehindHeads:
    """Items of lanes that gave their heads, in order."""

    def __init__(self, committed: int, payload_bytes_max: int | None) -> None:
        self._limits = committed, payload_bytes_max
        self._opened: list[_Opened] = []

    def open(self, lanes: list[tuple[int, Lane]]) -> None:
        """Adds what is behind the heads of lanes."""
        for number, lane in lanes:
            second = lane.second()
            if second is not None:
                self._opened.append((second.order, number, lane, None, _NOTHING))
        heapify(self._opened)

    def least(self) -> int:
        """Returns an order that no item comes before."""
        return self._opened[0][0] if self._opened else HIGHEST

    def up_to(self, order: int) -> Iterator[LaneItem]:
        """Yields the items before this order."""
        opened = self._opened
        while opened and opened[0][0] < order:
            _, number, lane, item, rest = opened[0]
            if item is None:
                rest = lane.durable(*self._limits)
                next(rest)
            following = next(rest, None)
            if following is None:
                heappop(opened)
            else:
                heapreplace(opened, (following.order, number, lane, following, rest))
            if item is not None:
                yield item
