"""A lane: the jobs of one priority, name and size that are ready, first ready first out.

Jobs with large payloads have lanes of their own, by size: not everybody takes them, and they keep
nobody back who takes smaller ones alone. The items of a lane are lots and single jobs. A job that
stops being ready (cancelled, deleted) stays where it is and is skipped when it comes to the front,
so nothing is ever searched for. That may be long, so such jobs are swept away by and by: each that
leaves has a few items looked at, first those at the front, then the others in turn, which keeps
their order. No single step walks over everything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Protocol

from jobline_server.engine import limits
from jobline_server.engine.values import JobOptions, JobState

# Looking a member up on its enum is dear before Python 3.12.
_READY = JobState.READY
# Items looked at for each time that jobs leave. With two of them a round over n items is over when
# jobs have left n / 2 times.
SWEPT_EACH = 2
# A round begins when jobs have left this often since the last one did.
LEFT_MIN = 64


# The largest payload that every caller takes.
SMALL_BYTES = limits.MESSAGE_BYTES_DEFAULT - limits.JOB_EXTRA_BYTES


def size_of(payload_bytes: int) -> int:
    """The size of lane for a payload: 0 for what every caller takes, 1 up to twice as much, 2 up to
    twice that.
    """
    message_bytes = payload_bytes + limits.JOB_EXTRA_BYTES
    return ((message_bytes - 1) // limits.MESSAGE_BYTES_DEFAULT).bit_length()


class LaneItem(Protocol):
    """What stands in a lane: a lot, or a single job."""

    state: JobState
    order: int
    offset: int
    pushed_ms: int
    volatile: bool

    @property
    def options(self) -> JobOptions:
        """The options of its jobs."""

    def is_ready(self) -> bool:
        """Whether any of its jobs waits to be handed out."""

    def reach_ready(self) -> bool:
        """The same of an item at the head of its lane, which moves past what has left it."""

    def place(self) -> tuple[int, int]:
        """Where it stands among all that are ready."""

    def payload_bytes_max(self) -> int:
        """Bytes of its largest payload."""


def place_of(item: LaneItem) -> tuple[int, int]:
    """`item.place()`, as a key to sort by."""
    return item.place()


LaneKey = tuple[int, str, int]
"""Priority, name and size: which lane of its queue an item stands in."""


def lane_key(item: LaneItem) -> LaneKey:
    """The key of the lane that an item belongs to."""
    options, largest = item.options, item.payload_bytes_max()
    return options.priority, options.name, size_of(largest) if largest > SMALL_BYTES else 0


class Lane:
    """A FIFO. `ready` counts the jobs in it that may be handed out. While its gate is closed
    (`gates`) nobody is given them.

    `items` is the front; while a sweep is under way, `unswept` stands behind it: what the sweep has
    not come to yet. What is new goes to the end of both.
    """

    __slots__ = ("_left", "items", "name", "opens_ms", "priority", "ready", "size", "unswept")

    def __init__(self, priority: int, name: str, size: int = 0) -> None:
        self.priority = priority
        self.name = name
        self.size = size
        self.items: deque[LaneItem] = deque()
        self.ready = 0
        self.unswept: deque[LaneItem] = deque()
        # When its gate opens, in engine time; 0 while it is open.
        self.opens_ms = 0
        self._left = 0

    @property
    def key(self) -> LaneKey:
        """Which lane of its queue this is."""
        return self.priority, self.name, self.size

    def __iter__(self) -> Iterator[LaneItem]:
        """All items in order, those that are not ready any more too."""
        return chain(self.items, self.unswept) if self.unswept else iter(self.items)

    def put(self, item: LaneItem, jobs: int) -> None:
        """Adds at the tail."""
        (self.unswept or self.items).append(item)
        self.ready += jobs

    def put_back(self, jobs: Sequence[LaneItem]) -> None:
        """Adds jobs that were handed out before, in their order, each where it stood: before all
        that was behind it. So it does not matter in which parts jobs come back.
        """
        cut = len(jobs)
        if self.unswept:
            cut = bisect_left(jobs, place_of(self.unswept[0]), key=place_of)
            _insert(self.unswept, jobs[cut:])
        _insert(self.items, jobs[:cut])
        self.ready += len(jobs)

    def leave(self, jobs: int) -> None:
        """Jobs somewhere in the lane are not ready any more; they are skipped when they come up."""
        self.ready -= jobs
        self._left += 1
        for _ in range(SWEPT_EACH):
            self._sweep_one()

    def _sweep_one(self) -> None:
        items, unswept = self.items, self.unswept
        if items and not items[0].is_ready():
            items.popleft()
        elif unswept:
            item = unswept.popleft()
            if item.is_ready():
                items.append(item)
        elif self._left > LEFT_MIN:
            self._left = 0
            self.unswept, self.items = items, unswept

    def head(self) -> LaneItem | None:
        """The next item, which is `items[0]` then; what stopped being ready is thrown away on the
        way.
        """
        items, unswept = self.items, self.unswept
        while items or unswept:
            if not items:
                items.append(unswept.popleft())
            item = items[0]
            if item.reach_ready():
                return item
            items.popleft()
        return None

    def second(self) -> LaneItem | None:
        """What lies behind the head, ready or not."""
        if len(self.items) > 1:
            return self.items[1]
        return self.unswept[0] if self.unswept else None

    def durable(self, committed: int, payload_bytes_max: int | None = None) -> Iterator[LaneItem]:
        """Yields what may go out, in order, up to the first that is not on disk or too large; a lot
        may have none left to give.
        """
        for item in self:
            if item.offset > committed:
                if item.is_ready():
                    return
            elif item.state is _READY:
                if payload_bytes_max is not None and item.payload_bytes_max() > payload_bytes_max:
                    return
                yield item

    def clear(self) -> None:
        """Forgets what lies in a lane that has nothing ready."""
        self.items.clear()
        self.unswept.clear()


def _insert(items: deque[LaneItem], jobs: Sequence[LaneItem]) -> None:
    """Puts jobs, in their order, among items. What stands before them is turned to the other end
    meanwhile, which costs next to nothing an item.
    """
    left, turned = len(items), 0
    for job in jobs:
        before = _before(items, left, place_of(job))
        items.rotate(-before)
        items.append(job)
        left -= before
        turned += before + 1
    items.rotate(turned)


def _before(items: deque[LaneItem], length: int, place: tuple[int, int]) -> int:
    """How many of the first `length` items stand before a place; near the front it is found at
    once, and the items on the way there are not looked at.
    """
    high = 1
    while high <= length and place_of(items[high - 1]) < place:
        high *= 2
    return bisect_left(items, place, high // 2, min(high - 1, length), key=place_of)
