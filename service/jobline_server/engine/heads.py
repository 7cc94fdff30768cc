"""Heads: the lanes of one priority by what stands at their heads, where there are many of them.

To merge a few lanes is cheap, but a queue may have a lane for each of twenty thousand names, and
none but the first of them have what goes out next. So such lanes lie in a heap, by a bound: no item
of a lane comes before it. What leaves a lane only raises its head, and the bound follows when the
lane comes to the top of the heap; what is put before its head is noted anew. So a hand-out costs
what it brings, however many lanes there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace

from jobline_server.engine.lane import Lane, LaneItem

# Comes before every order.
LOWEST = -(1 << 62)

_Opened = tuple[int, int, LaneItem, Iterator[LaneItem]]
"""The order of an item, a number that no other has, the item, and what stands behind it."""


class LaneHeads:
    """A heap of lanes of small payloads. Of a lane that was noted twice only the newest entry
    counts.
    """

    __slots__ = ("_entries", "_number")

    size = 0

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._number = 0
        self._entries: list[tuple[int, int, Lane]] = []
        for lane in lanes:
            head = lane.head()
            self._entries.append((head.order if head else LOWEST, self._mark(lane), lane))
        heapify(self._entries)

    def __len__(self) -> int:
        """Entries, those that do not count any more too."""
        return len(self._entries)

    def note(self, lane: Lane) -> None:
        """A lane is new, or something was put before its head."""
        heappush(self._entries, (LOWEST, self._mark(lane), lane))

    def durable(self, committed: int) -> Iterator[LaneItem]:
        """What may go out of all lanes, in order, each as far as it is on disk. Nothing may change
        meanwhile.
        """
        self._raise_bounds()
        entries = self._entries
        # The entries that come next are found from the top of the heap on, which stays as it is.
        frontier = [(entries[0][0], 0)] if entries else []
        opened: list[_Opened] = []
        while frontier or opened:
            if frontier and (not opened or frontier[0][0] <= opened[0][0]):
                _, at = heappop(frontier)
                for child in range(2 * at + 1, min(2 * at + 3, len(entries))):
                    heappush(frontier, (entries[child][0], child))
                _, number, lane = entries[at]
                if _counts(number, lane):
                    _open(opened, number, lane.durable(committed))
                continue
            _, number, item, rest = heappop(opened)
            yield item
            _open(opened, number, rest)

    def _mark(self, lane: Lane) -> int:
        self._number = lane.mark = self._number + 1
        return self._number

    def _raise_bounds(self) -> None:
        """Lanes at the top have the bound of their heads afterwards; what is gone has left."""
        entries = self._entries
        while entries:
            bound, number, lane = entries[0]
            head = lane.head() if _counts(number, lane) else None
            if head is None:
                heappop(entries)
            elif head.order == bound:
                return
            else:
                heapreplace(entries, (head.order, number, lane))


def _counts(number: int, lane: Lane) -> bool:
    """Whether an entry is its lane's newest, and the lane has anything ready."""
    return lane.mark == number and lane.ready > 0


def _open(opened: list[_Opened], number: int, items: Iterator[LaneItem]) -> None:
    """The next of these items, if there is one, is merged with those of other lanes."""
    item = next(items, None)
    if item is not None:
        heappush(opened, (item.order, number, item, items))
