"""Rates of groups: a bucket for each group that has used tokens.

A group has its bucket. If the group goes before its bucket is full again, the bucket is kept here
until it is: a group that comes back has no more tokens than it may. The server lets no new group in
while there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from jobline_server.engine.group import Group
from jobline_server.engine.load import Load
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import RateLimit, TokenBucket

# Kept buckets examined for each other one that is kept, and in each look of the timers, about 1 µs
# each: those that are full are dropped.
SWEPT_EACH = 2
SWEPT_BY_TIMER = 500
SWEEP_MS = 1_000


class GroupRates:
    """What a shard knows of the tokens of its groups. Time is monotonic. Tokens are bookkeeping, so
    a hand-out takes them without a fact of its own.
    """

    __slots__ = ("_emptied", "_kept", "_load", "_queues", "_started_ms")

    def __init__(self, queues: Mapping[str, Queue], load: Load) -> None:
        self._queues = queues
        self._load = load
        # The buckets of groups that are gone, by queue and name; the next to examine come first.
        self._kept: dict[tuple[Queue, str], TokenBucket] = {}
        # When the server started, and the queues whose groups had a rate then: what they handed out
        # before is not known.
        self._started_ms = 0
        self._emptied: set[Queue] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def restart(self, mono_ms: int) -> None:
        """Empties all buckets, at a start of the server."""
        self._load.group_buckets -= len(self._kept)
        self._kept, self._started_ms = {}, mono_ms
        self._emptied = {queue for queue in self._queues.values() if queue.settings.group.rate}
        for queue in self._queues.values():
            for group in queue.groups:
                rate, group.bucket = group.settings.rate, None
                if rate is not None:
                    group.bucket = TokenBucket(rate, mono_ms)
                    group.bucket.empty(mono_ms)
                    queue.groups.have_rates = True

    def move_to(self, load: Load) -> None:
        """Counts what is kept in another load from now on."""
        self._load.group_buckets -= len(self._kept)
        self._load = load
        load.group_buckets += len(self._kept)

    def forget(self, queue: Queue) -> None:
        """Forgets a queue that was deleted; what is kept of its groups goes by and by."""
        self._emptied.discard(queue)

    def change(
        self, queue: Queue, group: Group, rate: RateLimit, mono_ms: int, *, had_none: bool
    ) -> None:
        """Puts another rate of a group in force: it keeps its tokens. One that had no rate, and has
        no bucket, has all.
        """
        if had_none and group.bucket is None and (queue, group.name) not in self._kept:
            group.bucket = TokenBucket(rate, mono_ms)
        else:
            self.bucket_of(queue, group, rate, mono_ms)

    def bucket_of(self, queue: Queue, group: Group, rate: RateLimit, mono_ms: int) -> TokenBucket:
        """Returns the bucket of a group, with this rate in force."""
        bucket = group.bucket
        if bucket is None:
            bucket = self._taken_back(queue, group.name) or self._new(queue, rate, mono_ms)
            group.bucket = bucket
        if bucket.limit is not rate and bucket.limit != rate:
            bucket.change(rate, mono_ms)
        return bucket

    def shown(self, queue: Queue, group: Group, rate: RateLimit, mono_ms: int) -> TokenBucket:
        """Returns the bucket of a group to read it, as it would be; leaves all as it is."""
        bucket = group.bucket or self._kept.get((queue, group.name))
        if bucket is None:
            return self._new(queue, rate, mono_ms)
        bucket = copy(bucket)
        bucket.change(rate, mono_ms)
        return bucket

    def keep(self, queue: Queue, group: Group, mono_ms: int) -> None:
        """Keeps the bucket of a group that is about to go, unless it is full."""
        bucket, group.bucket = group.bucket, None
        if bucket is not None and not bucket.is_full(mono_ms):
            self._kept[queue, group.name] = bucket
            self._load.group_buckets += 1
            self.sweep(mono_ms, SWEPT_EACH)

    def sweep(self, mono_ms: int, count: int = SWEPT_BY_TIMER) -> None:
        """Examines kept buckets: one that is full, or whose queue is gone, is dropped; the others
        go to the end.
        """
        kept = self._kept
        for _ in range(min(count, len(kept))):
            key = next(iter(kept))
            bucket = kept.pop(key)
            is_gone = self._queues.get(key[0].name) is not key[0]
            if is_gone or bucket.is_full(mono_ms):
                self._load.group_buckets -= 1
            else:
                kept[key] = bucket

    def _taken_back(self, queue: Queue, name: str) -> TokenBucket | None:
        """Returns the kept bucket of a group that has come back."""
        bucket = self._kept.pop((queue, name), None) if self._kept else None
        self._load.group_buckets -= bucket is not None
        return bucket

    def _new(self, queue: Queue, rate: RateLimit, mono_ms: int) -> TokenBucket:
        """Returns the bucket of a group that nothing is known of."""
        bucket = TokenBucket(rate, mono_ms)
        if queue in self._emptied:
            bucket.empty(self._started_ms)
        return bucket
