"""Heads: lanes by what stands at their heads, where there are many of them.

To merge a few lanes is cheap, but a queue may have a lane for each of twenty thousand names, and
none but the first of them have what goes out next. So such lanes lie in a heap, by a bound: no item
of a lane comes before it. What leaves a lane only raises its head, and the bound follows when the
lane comes to the top of the heap; what is put before its head is noted anew. So a hand-out costs
what it brings, however many lanes there are.

A lane whose gate is closed leaves the heap when it comes to the top, and is noted again when its
gate opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from jobline_server.engine.lane import Lane, LaneItem

# Comes before every order.
LOWEST = -(1 << 62)

_Opened = tuple[int, int, Lane, LaneItem | None, Iterator[LaneItem]]
"""What comes behind the head of a lane that gave it: the order of its next item, a number that no
other has, the lane, the item, and what comes after that. Before anybody looked, the order is a
bound, and there is no item.
"""
_NOTHING: Iterator[LaneItem] = iter(())


class LaneHeads:
    """A heap of lanes of one priority and size. Of a lane that was noted twice only the newest
    entry counts.
    """

    __slots__ = ("_entries", "_newest", "_number", "_out")

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._number = 0
        self._newest: dict[Lane, int] = {}
        self._entries: list[tuple[int, int, Lane]] = []
        # What the last walk took off the heap.
        self._out: list[tuple[int, Lane]] = []
        for lane in lanes:
            head = lane.head()
            self._entries.append((head.order if head else LOWEST, self._number_for(lane), lane))
        heapify(self._entries)

    def __len__(self) -> int:
        """Entries, those that do not count any more too."""
        return len(self._entries) + len(self._out)

    def note(self, lane: Lane) -> None:
        """A lane is new, or something was put before its head."""
        heappush(self._entries, (LOWEST, self._number_for(lane), lane))

    def durable(self, committed: int, payload_bytes_max: int | None = None) -> Iterator[LaneItem]:
        """Yields what may go out of all lanes, in order, each as far as it is on disk and not too
        large. Nothing may change meanwhile.
        """
        self._put_back()
        entries, out = self._entries, self._out
        opened: list[_Opened] = []
        while entries or opened:
            if opened and (not entries or opened[0][0] < entries[0][0]):
                item = _next_opened(opened, committed, payload_bytes_max)
                if item is not None:
                    yield item
                continue
            bound, number, lane = entries[0]
            head = self._head_of(number, lane)
            if head is None:
                heappop(entries)
            elif head.order != bound:
                heapreplace(entries, (head.order, number, lane))
            else:
                heappop(entries)
                out.append((number, lane))
                if head.offset > committed or (
                    payload_bytes_max is not None and head.payload_bytes_max() > payload_bytes_max
                ):
                    continue
                yield head
                second = lane.second()
                if second is not None:
                    heappush(opened, (second.order, number, lane, None, _NOTHING))

    def lanes_up_to(self, order: int) -> Iterator[Lane]:
        """Yields the lanes that may have an item up to this order, and looks at few others."""
        self._put_back()
        entries, at_next = self._entries, [0]
        while at_next:
            at = at_next.pop()
            if at < len(entries) and entries[at][0] <= order:
                _, number, lane = entries[at]
                if self._newest.get(lane) == number:
                    yield lane
                at_next += (2 * at + 1, 2 * at + 2)

    def _number_for(self, lane: Lane) -> int:
        self._number = self._newest[lane] = self._number + 1
        return self._number

    def _head_of(self, number: int, lane: Lane) -> LaneItem | None:
        """The head of a lane; None if this entry is not its newest, or it may give nothing. Such an
        entry is of no use any more.
        """
        if self._newest.get(lane) != number:
            return None
        head = lane.head() if lane.ready and not lane.opens_ms else None
        if head is None:
            del self._newest[lane]
        return head

    def _put_back(self) -> None:
        """Puts the lanes that the last walk took off the heap back, by their heads of now."""
        out, self._out = self._out, []
        for number, lane in out:
            head = self._head_of(number, lane)
            if head is not None:
                heappush(self._entries, (head.order, number, lane))


def _next_opened(
    opened: list[_Opened], committed: int, payload_bytes_max: int | None
) -> LaneItem | None:
    """Takes the next item behind the heads; None if the first of these only had a bound, and
    stands by its item now.
    """
    _, number, lane, item, rest = opened[0]
    if item is None:
        rest = lane.durable(committed, payload_bytes_max)
        next(rest)
    following = next(rest, None)
    if following is None:
        heappop(opened)
    else:
        heapreplace(opened, (following.order, number, lane, following, rest))
    return item
