"""A lane: the READY jobs of one queue, priority, name, size and needs, in FIFO order; in a fair
queue, of one tenant.

Large payloads have lanes of their own, by size: a consumer that does not accept them is not held up
by them. The items of a lane are lots and single jobs. A job that stops being ready (cancelled,
deleted) is not searched for: it stays in the lane and is skipped at the front. As that may take
long, each removal also sweeps a few items, first at the front, then in turn, which keeps the order.
No single step walks over everything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Protocol

from jobline_server.engine import limits
from jobline_server.engine.rules import NO_RULES, Needs
from jobline_server.engine.values import JobOptions, JobState

# Enum attribute access is slow before Python 3.12.
_READY = JobState.READY
# Items examined per call of `leave`. With two, a sweep of n items takes n / 2 calls.
SWEPT_EACH = 2
# Calls of `leave` between the starts of two sweeps, at least.
LEFT_MIN = 64


# The largest payload that every caller accepts.
SMALL_BYTES = limits.MESSAGE_BYTES_DEFAULT - limits.JOB_EXTRA_BYTES


def size_of(payload_bytes: int) -> int:
    """Returns the lane size of a payload: 0 up to the limit of every caller, 1 up to twice that
    limit, 2 up to four times.
    """
    message_bytes = payload_bytes + limits.JOB_EXTRA_BYTES
    return ((message_bytes - 1) // limits.MESSAGE_BYTES_DEFAULT).bit_length()


class LaneItem(Protocol):
    """An item of a lane: a lot, or a single job."""

    state: JobState
    order: int
    offset: int
    pushed_ms: int
    volatile: bool

    @property
    def options(self) -> JobOptions:
        """The options of its jobs."""

    @property
    def reserved_for(self) -> str:
        """The session for which it is reserved; "" for all."""

    @property
    def tenant(self) -> str:
        """The tenant that it belongs to, in a fair queue; else ""."""

    def is_ready(self) -> bool:
        """Returns whether any of its jobs is READY."""

    def reach_ready(self) -> bool:
        """Returns the same for the head of a lane; a lot moves its cursor to its next READY job."""

    def place(self) -> tuple[int, int]:
        """Returns its sort key among all READY items."""

    def payload_bytes_max(self) -> int:
        """Returns the bytes of its largest payload."""

    def waits_from_ms(self) -> int:
        """Returns since when its READY jobs wait, in milliseconds since 1970."""


# What is unswept between sweeps; it stays empty. A deque is larger than all the rest of a lane.
_NOTHING: deque[LaneItem] = deque()


def place_of(item: LaneItem) -> tuple[int, int]:
    """Returns `item.place()`, as a key to sort by."""
    return item.place()


LaneKey = tuple[int, str, int, Needs | None, str]
"""Priority, name, size, needs and tenant: the key of a lane within its queue."""


class ReadyCounter(Protocol):
    """What counts the READY jobs of a lane beside its queue."""

    ready: int


def lane_key(item: LaneItem) -> LaneKey:
    """Returns the key of the lane that an item belongs to."""
    options, largest = item.options, item.payload_bytes_max()
    size = size_of(largest) if largest > SMALL_BYTES else 0
    rules = options.rules
    needs = None if rules is NO_RULES else rules.needs
    if rules.sticky and needs is not None:
        needs = needs._replace(session=item.reserved_for)
    return options.priority, options.name, size, needs, item.tenant


class Lane:
    """A FIFO of items; `ready` counts the READY jobs in it. While its gate is closed (`gates`),
    none of them are leased.

    `items` is the front. During a sweep, `unswept` holds the items behind it that the sweep has not
    reached yet; new items go to the end of both.
    """

    __slots__ = (
        "_left",
        "items",
        "name",
        "needs",
        "opens_ms",
        "owner",
        "priority",
        "ready",
        "size",
        "tenant",
        "unswept",
    )

    def __init__(
        self,
        priority: int,
        name: str,
        size: int = 0,
        needs: Needs | None = None,
        tenant: str = "",
    ) -> None:
        self.priority = priority
        self.name = name
        self.size = size
        self.needs = needs
        self.tenant = tenant
        self.owner: ReadyCounter | None = None
        self.items: deque[LaneItem] = deque()
        self.ready = 0
        self.unswept = _NOTHING
        # When its gate opens, in monotonic milliseconds; 0 while it is open.
        self.opens_ms = 0
        self._left = 0

    @property
    def key(self) -> LaneKey:
        """The key of this lane within its queue."""
        return self.priority, self.name, self.size, self.needs, self.tenant

    def __iter__(self) -> Iterator[LaneItem]:
        """Iterates over all items in order, including those that are no longer READY."""
        return chain(self.items, self.unswept) if self.unswept else iter(self.items)

    def put(self, item: LaneItem, jobs: int) -> None:
        """Appends an item with this number of READY jobs."""
        (self.unswept or self.items).append(item)
        self.ready += jobs

    def put_back(self, jobs: Sequence[LaneItem], ready: int = 0) -> None:
        """Inserts items, given in order, each at its place: jobs that were leased before, and items
        of the front. So the order does not depend on the batches they come in. `ready` is their
        number of READY jobs; 0: each is one.
        """
        cut = len(jobs)
        if self.unswept:
            cut = bisect_left(jobs, place_of(self.unswept[0]), key=place_of)
            _insert(self.unswept, jobs[cut:])
        _insert(self.items, jobs[:cut])
        self.ready += ready or len(jobs)

    def turn_to(self, item: LaneItem) -> int:
        """Rotates `items` until an item behind those of the front is first; returns by how much, to
        be rotated back, and 0 if the item is not there or stands behind others. Recovery may lease
        sticky items from any place, as it does not know which were reserved.
        """
        items, unswept = self.items, self.unswept
        at = _before(items, len(items), item.place())
        while at == len(items) and unswept:
            items.append(unswept.popleft())
            at += items[-1] is not item
        if at == len(items) or items[at] is not item or not item.reach_ready():
            return 0
        before = at - 1
        while before and not items[before].is_ready():
            before -= 1
        if items[before].order >= 0 and not item.options.rules.sticky:
            return 0
        items.rotate(-at)
        return at

    def take_out(self, item: LaneItem) -> None:
        """Removes an item of one READY job, wherever it stands; the caller counts it out of the
        queue.
        """
        items, place = self.items, item.place()
        if self.unswept and place_of(self.unswept[0]) <= place:
            items = self.unswept
        del items[_before(items, len(items), place)]
        self.ready -= 1

    def leave(self, jobs: int) -> None:
        """Counts `jobs` out that are no longer READY, and sweeps a few items. Their items stay in
        the lane and are skipped.
        """
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
            if not unswept:
                self.unswept = _NOTHING
        elif self._left > LEFT_MIN:
            self._left = 0
            self.unswept, self.items = items, deque()

    def head(self) -> LaneItem | None:
        """Returns the next READY item, which is then `items[0]`; drops the items before it that are
        no longer READY.
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
        """Returns the item behind the head, READY or not."""
        if len(self.items) > 1:
            return self.items[1]
        return self.unswept[0] if self.unswept else None

    def durable(self, committed: int, payload_bytes_max: int | None = None) -> Iterator[LaneItem]:
        """Yields the READY items in order, up to the first that is not on disk or is too large. A
        lot may have no jobs left to lease. Items of the front that are not on disk are skipped.
        """
        for item in self:
            if item.offset > committed:
                if item.order >= 0 and item.is_ready():
                    return
            elif item.state is _READY:
                if payload_bytes_max is not None and item.payload_bytes_max() > payload_bytes_max:
                    return
                yield item

    def clear(self) -> None:
        """Drops all items of a lane that has no READY jobs."""
        self.items.clear()
        self.unswept = _NOTHING


def _insert(items: deque[LaneItem], jobs: Sequence[LaneItem]) -> None:
    """Inserts jobs, in order, among items. The deque is rotated to each place and back, which costs
    next to nothing per item.
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
    """Returns how many of the first `length` items are before a place, by a search in doubling
    steps: most places are near the front.
    """
    high = 1
    while high <= length and place_of(items[high - 1]) < place:
        high *= 2
    return bisect_left(items, place, high // 2, min(high - 1, length), key=place_of)
