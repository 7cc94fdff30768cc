"""Closed groups: when groups that let nothing out for a time go on.

A limit that somebody set ends by the wall clock, a rate gives tokens by the monotonic one. Both are
kept in heaps, so that only groups that are due are examined. Nothing here is stored: the limits
are, and a start of the server notes them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from jobline_server.engine.group import Group, rate_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import TokenBucket
from jobline_server.engine.values import Now

# Obsolete entries allowed in a heap, beyond one per closed group.
MOMENTS_SPARE = 64


class _Moments:
    """A heap of groups by time; an entry is obsolete once its group has another time."""

    __slots__ = ("_at", "_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Group]] = []
        self._at: dict[Group, int] = {}
        self._number = 0

    def note(self, group: Group, at_ms: int) -> None:
        self._at[group] = at_ms
        self._number += 1
        heappush(self._heap, (at_ms, self._number, group))
        if len(self._heap) > 2 * len(self._at) + MOMENTS_SPARE:
            self._heap = [one for one in self._heap if self._at.get(one[2]) == one[0]]
            heapify(self._heap)

    def forget(self, group: Group) -> None:
        self._at.pop(group, None)

    def first(self) -> tuple[int, Group] | None:
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return (heap[0][0], heap[0][2]) if heap else None

    def due(self, at_ms: int) -> Group | None:
        first = self.first()
        return first[1] if first is not None and first[0] <= at_ms else None


class ClosedGroups:
    """The closed groups of a shard: by whom they were closed, and when they go on. Unless it
    `has_any`, nothing is due.
    """

    __slots__ = ("_asked", "_limited", "_used_up", "has_any")

    def __init__(self) -> None:
        self._limited = _Moments()
        self._used_up = _Moments()
        # Queues whose rate changed: the names of their groups, part by part.
        self._asked: deque[tuple[Queue, Iterator[list[str]]]] = deque()
        self.has_any = False

    def note(self, group: Group, now: Now) -> None:
        """Notes a group that was closed at this time, instead of what was said before."""
        self.forget(group)
        if group.limited is None:
            return
        self.has_any = True
        if group.is_used_up:
            wait_ms = max(group.limited.until_ms - now.wall_ms, 0)
            self._used_up.note(group, now.mono_ms + wait_ms)
        else:
            self._limited.note(group, group.limited.until_ms)

    def ask(self, group: Group, mono_ms: int) -> None:
        """Has a group go on at once if it has used up its rate, as that was changed."""
        if group.is_used_up:
            self._used_up.note(group, mono_ms)

    def ask_all(self, queue: Queue) -> None:
        """Does the same for all groups of a queue, in slices."""
        self._asked.append((queue, queue.groups.names()))
        self.has_any = True

    def ask_part(self, now: Now) -> bool:
        """Does a slice of what `ask_all` has left; returns whether more is left. A group that has
        used up the new rate meanwhile stays closed.
        """
        if self._asked:
            queue, names = self._asked[0]
            part = next(names, None)
            if part is None:
                self._asked.popleft()
            for name in part or ():
                group = queue.groups.find(name)
                if group is None:
                    continue
                rate = rate_of(group.settings, queue.settings.group)
                if group.bucket is None or group.bucket.limit != rate:
                    self.ask(group, now.mono_ms)
        return bool(self._asked)

    def forget(self, group: Group) -> None:
        """Forgets a group that goes on, or whose queue was deleted."""
        self._limited.forget(group)
        self._used_up.forget(group)

    def due(self, now: Now) -> Group | None:
        """Returns a group that goes on now; None without."""
        return self._limited.due(now.wall_ms) or self._used_up.due(now.mono_ms)

    def wait_ms(self, now: Now) -> int | None:
        """Returns in how many milliseconds a group may be due; None if none is closed."""
        if self._asked:
            return -1
        limited, used_up = self._limited.first(), self._used_up.first()
        waits = [] if limited is None else [limited[0] - now.wall_ms]
        waits += [] if used_up is None else [used_up[0] - now.mono_ms]
        self.has_any = bool(waits)
        return min(waits) if waits else None

    def is_due_before(self, now: Now) -> bool:
        """Returns whether a group is due before this time."""
        wait_ms = self.wait_ms(now)
        return wait_ms is not None and wait_ms < 0

    def restart(self, groups: Iterable[Group], queues: Mapping[str, Queue], now: Now) -> None:
        """Notes the groups that are closed at a start of the server. Their buckets are empty."""
        self._limited, self._used_up = _Moments(), _Moments()
        self._asked.clear()
        for group in groups:
            if group.limited is None:
                continue
            self.note(group, now)
            rate = rate_of(group.settings, queues[group.queue].settings.group)
            if group.is_used_up:
                bucket = None if rate is None else TokenBucket(rate, now.mono_ms)
                if bucket is not None:
                    bucket.empty(now.mono_ms)
                opens_ms = now.mono_ms if bucket is None else bucket.next_ms(1, now.mono_ms)
                self._used_up.note(group, opens_ms)
