"""Named limiters: limits that jobs of any queues share.

A limiter is one object for all shards of a server, beside their `Load`; its settings are durable
facts of its home shard, which is found as that of a queue. Active jobs are counted, anew at a
start, when buckets are empty (see `rates`).

A lane whose next job a limiter does not let out has its gate closed and waits in the line of the
limiter, in the order in which lanes came to it. When tokens come, or a job ends, as many lanes are
opened as jobs may start. If nobody takes from them, more are opened each time; so a lane without
consumers holds up others for a moment only, and no step opens more than a slice.

A name without settings is no limit: its jobs go free. They are counted all the same, so that a
limiter which comes back knows what is active.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from jobline_server.engine.allowance import Allowance, TimeLimit
from jobline_server.engine.gates import MOMENTS_SPARE
from jobline_server.engine.lane import LaneKey
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import Now

# Lanes examined each time that one gets in line: those whose jobs are gone leave it.
SWEPT_EACH = 2
# How soon more lanes are opened if nobody took from those that were opened before.
AGAIN_MS = 2


@dataclass(frozen=True, slots=True)
class LimiterSettings:
    """The durable part of a limiter. `number` is its number within the store."""

    name: str
    number: int
    rate: RateLimit | None = None
    concurrency: int | None = None
    limited: TimeLimit | None = None
    created_ms: int = 0


class Limiter:
    """The state of a name: its limits, how many of its jobs are active, and the lanes in line."""

    __slots__ = ("active", "allowance", "asked_ms", "line", "name", "opened", "settings", "swept")

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: LimiterSettings | None = None
        self.allowance = Allowance()
        self.active = 0
        # Lanes with a closed gate, first come first served, and what the next job of each costs.
        self.line: dict[tuple[Queue, LaneKey], int] = {}
        # The same lanes, in the order in which they are examined next.
        self.swept: dict[tuple[Queue, LaneKey], None] = {}
        # When its line is looked at next, in monotonic milliseconds; None without a time.
        self.asked_ms: int | None = None
        # Lanes opened since a job took from it.
        self.opened = 0

    def is_over(self) -> bool:
        """Returns whether nothing is known of this name any more."""
        return self.settings is None and not self.active and not self.line


class Limiters:
    """All limiters of a server, by name."""

    __slots__ = ("_heap", "_number", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, Limiter] = {}
        # An entry is obsolete once its limiter is asked at another time.
        self._heap: list[tuple[int, int, Limiter]] = []
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def find(self, name: str) -> Limiter | None:
        """Returns a limiter that has settings; None without."""
        limiter = self.by_name.get(name)
        return None if limiter is None or limiter.settings is None else limiter

    def put(self, settings: LimiterSettings, mono_ms: int) -> None:
        """Puts a limiter's settings in force. Tokens and active jobs stay."""
        limiter = self._known(settings.name)
        limiter.settings = settings
        until_ms = 0 if settings.limited is None else settings.limited.until_ms
        limiter.allowance.set_limits(settings.rate, settings.concurrency, until_ms, mono_ms)
        self._ask(limiter, mono_ms)

    def drop(self, name: str, mono_ms: int) -> None:
        """Deletes a limiter: its jobs go free."""
        limiter = self.by_name.get(name)
        if limiter is not None:
            limiter.settings, limiter.allowance = None, Allowance()
            self._ask(limiter, mono_ms)
            self._forget(limiter)

    def restart(self, name: str, mono_ms: int) -> None:
        """Empties the bucket of a limiter, at a start of the server."""
        self.by_name[name].allowance.restart(mono_ms)

    def take(self, rules: JobRules, count: int, mono_ms: int) -> None:
        """Takes the places and tokens of jobs that start."""
        for name in rules.limiters:
            limiter = self._known(name)
            limiter.active += count
            limiter.opened = 0
            allowance = limiter.allowance
            if allowance.bucket is not None:
                allowance.bucket.take(count * allowance.price(rules.cost), mono_ms)

    def count_active(self, rules: JobRules, count: int) -> None:
        """Counts jobs that were active at a start of the server."""
        for name in rules.limiters:
            self._known(name).active += count

    def free(self, rules: JobRules, count: int, mono_ms: int) -> None:
        """Gives back the places of jobs that are not active any more."""
        for name in rules.limiters:
            limiter = self.by_name.get(name)
            if limiter is not None:
                limiter.active = max(limiter.active - count, 0)
                if limiter.line:
                    self._ask(limiter, mono_ms)
                self._forget(limiter)

    def wait(self, limiter: Limiter, now: Now, queue: Queue, key: LaneKey, cost: int) -> None:
        """Puts a lane whose gate was closed in line, behind those that wait. When it may go on is
        known once the jobs before it have taken their tokens: in the next look.
        """
        limiter.line[queue, key] = cost
        limiter.swept.setdefault((queue, key))
        for _ in range(SWEPT_EACH):
            _sweep_one(limiter)
        self._ask(limiter, now.mono_ms)

    def leave(self, queue: Queue) -> None:
        """Takes the lanes of a queue that was deleted out of all lines."""
        for key in queue.gates.closed:
            for name in key[3].limiters if key[3] is not None else ():
                limiter = self.by_name.get(name)
                if limiter is not None and limiter.line.pop((queue, key), None) is not None:
                    limiter.swept.pop((queue, key), None)
                    self._forget(limiter)

    def first_ms(self) -> int | None:
        """Returns when to call `open_due`; None if only a job that ends lets others start."""
        heap = self._heap
        while heap and heap[0][2].asked_ms != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def open_due(self, now: Now, limit: int) -> list[Queue]:
        """Opens up to `limit` lanes that may go on; returns their queues."""
        queues: dict[Queue, None] = {}
        while limit > 0:
            first_ms = self.first_ms()
            if first_ms is None or first_ms > now.mono_ms:
                break
            limiter = heappop(self._heap)[2]
            limiter.asked_ms = None
            for queue in self._open(limiter, now, limit):
                queues[queue] = None
                limit -= 1
            # A limiter without lanes takes time, too.
            limit -= 1
        return list(queues)

    def _open(self, limiter: Limiter, now: Now, limit: int) -> Iterator[Queue]:
        """Opens the gates of the first lanes in line whose jobs may start, and as many more as were
        opened for nothing.
        """
        before, opened = limiter.opened, 0
        has_settings = limiter.settings is not None
        left = tokens = limiter.allowance.tokens(now.mono_ms)
        places = limiter.allowance.places(now, limiter.active) if has_settings else limit
        cost = 1
        while limiter.line and opened < limit:
            entry = next(iter(limiter.line))
            queue, key = entry
            cost = limiter.line[entry]
            price = limiter.allowance.price(cost)
            if has_settings and (not places or price > tokens):
                break
            if has_settings and (left < price or opened >= places) and opened >= before:
                break
            left -= price
            opened += 1
            del limiter.line[entry]
            queue.open_gate(key)
            yield queue
        limiter.opened += opened
        if limiter.line:
            again_ms = limiter.allowance.asked_again_ms(now, cost)
            if again_ms is not None:
                self._ask(limiter, again_ms)
            elif opened:
                self._ask(limiter, now.mono_ms + AGAIN_MS)
        else:
            limiter.swept.clear()
        self._forget(limiter)

    def _ask(self, limiter: Limiter, at_ms: int) -> None:
        """Has the line of a limiter looked at, at this time or before."""
        if limiter.asked_ms is None or at_ms < limiter.asked_ms:
            limiter.asked_ms = at_ms
            self._number += 1
            heappush(self._heap, (at_ms, self._number, limiter))
            if len(self._heap) > 2 * len(self.by_name) + MOMENTS_SPARE:
                valid = {one[2]: one for one in self._heap if one[2].asked_ms == one[0]}
                self._heap = list(valid.values())
                heapify(self._heap)

    def _known(self, name: str) -> Limiter:
        limiter = self.by_name.get(name)
        if limiter is None:
            limiter = self.by_name[name] = Limiter(name)
        return limiter

    def _forget(self, limiter: Limiter) -> None:
        if limiter.is_over() and self.by_name.get(limiter.name) is limiter:
            del self.by_name[limiter.name]
            # Without limiters nobody calls `open_due`, and a look that is due would stay due.
            limiter.asked_ms = None


def _sweep_one(limiter: Limiter) -> None:
    """Examines one lane in line: one without jobs leaves it, and is forgotten by its queue."""
    entry = next(iter(limiter.swept))
    del limiter.swept[entry]
    queue, key = entry
    lane = queue.find_lane(key)
    if lane is not None and lane.ready:
        limiter.swept[entry] = None
    elif limiter.line.pop(entry, None) is not None:
        queue.open_gate(key)
