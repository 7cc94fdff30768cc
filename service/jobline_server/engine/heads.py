"""Heads: yields the items of many lanes in order.

A queue may have a lane for each of twenty thousand names, while only the first few hold the jobs
that are next. So lanes are ordered by a bound: no item of a lane comes before its bound. Removing
items only raises a lane's head, and the bound is corrected when the lane comes up; an item put
before the head adds a new entry. So a lease costs as much as it returns, however many lanes exist.

A lane whose head was leased mostly moves behind all others, as the newest jobs are at the end of
each lane. So the entries are a sorted run, to which such a lane is appended, and a heap for the
rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from jobline_server.engine.lane import Lane, LaneItem

# Greater than every order.
HIGHEST = 1 << 62

_Entry = tuple[int, int, Lane]
"""A bound, a unique number, and the lane."""
_Opened = tuple[int, int, Lane, LaneItem | None, Iterator[LaneItem]]
"""The items behind the head of a lane whose head was yielded: the order of the next item, a unique
number, the lane, the item, and the items after it. Before the first read, the order is a bound and
the item None.
"""
_NOTHING: Iterator[LaneItem] = iter(())


class LaneHeads:
    """Lanes of one priority and size in order of their heads. Only the newest entry of a lane
    counts. A lane that has no READY jobs, or whose gate is closed, is dropped when it comes up.
    """

    __slots__ = ("_heap", "_newest", "_number", "_out", "_run")

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._number = 0
        self._newest: dict[Lane, int] = {}
        self._run: deque[_Entry] = deque()
        self._heap: list[_Entry] = []
        # The entries that the last call of `durable` took out.
        self._out: list[tuple[int, Lane]] = []
        for lane in lanes:
            self.note(lane)
        self._run = deque(sorted([*self._run, *self._heap]))
        self._heap = []

    def __len__(self) -> int:
        """Returns the number of entries, including obsolete ones."""
        return len(self._run) + len(self._heap) + len(self._out)

    def note(self, lane: Lane) -> None:
        """Adds an entry for a lane that is new or has a new head."""
        head = lane.head()
        if head is not None:
            self._number = self._newest[lane] = self._number + 1
            self._insert(head.order, self._number, lane)

    def durable(self, committed: int, payload_bytes_max: int | None = None) -> Iterator[LaneItem]:
        """Yields the READY items of all lanes in order, of each lane up to the first that is not on
        disk or is too large. The lanes must not change meanwhile.
        """
        self._put_back()
        run, heap, out = self._run, self._heap, self._out
        yielded: list[tuple[int, Lane]] = []
        behind = _BehindHeads(committed, payload_bytes_max)
        # The lowest order of the items behind yielded heads.
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
            entry = number, lane
            out.append(entry)
            if least < order:
                behind.open(yielded)
                yielded = []
                yield from behind.up_to(order)
                least = behind.least()
            if head.offset > committed or (
                payload_bytes_max is not None and head.payload_bytes_max() > payload_bytes_max
            ):
                if order < 0:
                    least = min(least, behind.skip(number, lane))
                continue
            yield head
            yielded.append(entry)
            second = lane.second()
            if second is not None and second.order < least:
                least = second.order
        behind.open(yielded)
        yield from behind.up_to(HIGHEST)

    def lanes_up_to(self, order: int) -> Iterator[Lane]:
        """Yields the lanes that may have an item of at most this order; visits few others."""
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
        """Returns the head of a lane; None if this entry is not its newest, the lane has no READY
        jobs or its gate is closed. Drop such an entry.
        """
        if self._newest.get(lane) != number:
            return None
        head = lane.head() if lane.ready and not lane.opens_ms else None
        if head is None:
            del self._newest[lane]
        return head

    def _put_back(self) -> None:
        """Inserts the lanes that the last call of `durable` took out, by their current heads."""
        out, self._out = self._out, []
        for number, lane in out:
            head = self._head_of(number, lane)
            if head is not None:
                self._insert(head.order, number, lane)


class _BehindHeads:
    """The items behind the heads that were yielded, in order."""

    def __init__(self, committed: int, payload_bytes_max: int | None) -> None:
        self._limits = committed, payload_bytes_max
        self._opened: list[_Opened] = []

    def open(self, lanes: list[tuple[int, Lane]]) -> None:
        """Adds the items behind the heads of lanes."""
        for number, lane in lanes:
            second = lane.second()
            if second is not None:
                self._opened.append((second.order, number, lane, None, _NOTHING))
        heapify(self._opened)

    def skip(self, number: int, lane: Lane) -> int:
        """Adds the items of a lane that may be leased though its head may not; returns the order of
        the first, `HIGHEST` without any.
        """
        rest = lane.durable(*self._limits)
        item = next(rest, None)
        if item is None:
            return HIGHEST
        heappush(self._opened, (item.order, number, lane, item, rest))
        return item.order

    def least(self) -> int:
        """Returns a lower bound of the orders of all items."""
        return self._opened[0][0] if self._opened else HIGHEST

    def up_to(self, order: int) -> Iterator[LaneItem]:
        """Removes and yields the items before this order."""
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
