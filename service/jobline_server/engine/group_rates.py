"""Rates of groups: a bucket for each group that has used tokens.

A bucket is kept until it is full again, also if its group is gone by then: a group that comes back
has no more tokens than it may. The server lets no new group in while there are too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobline_server.engine.group import Group
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import RateLimit, TokenBucket

# Buckets examined each time that there is another one: those that are full again are dropped.
SWEPT_EACH = 2


class GroupRates:
    """The buckets of the groups of a shard. Time is monotonic."""

    __slots__ = ("_buckets", "_emptied", "_rated", "_started_ms")

    def __init__(self) -> None:
        # By queue and name; those that are examined next come first.
        self._buckets: dict[tuple[Queue, str], TokenBucket] = {}
        # Queues that have, or had, groups with a rate of their own.
        self._rated: set[Queue] = set()
        # When the server started, and the queues whose groups had a rate then: what they handed out
        # before is not known.
        self._started_ms = 0
        self._emptied: set[Queue] = set()

    def __len__(self) -> int:
        return len(self._buckets)

    def restart(self, groups: Iterable[Group], queues: Mapping[str, Queue], mono_ms: int) -> None:
        """Empties all buckets, at a start of the server; `groups` are those with records."""
        self._buckets, self._rated, self._started_ms = {}, set(), mono_ms
        self._emptied = {queue for queue in queues.values() if queue.settings.group.rate}
        for group in groups:
            queue, rate = queues[group.queue], group.settings.rate
            if rate is not None:
                bucket = self._buckets[queue, group.name] = TokenBucket(rate, mono_ms)
                bucket.empty(mono_ms)
                self._rated.add(queue)

    def is_used_by(self, queue: Queue) -> bool:
        """Returns whether any group of a queue may have a rate."""
        return queue.settings.group.rate is not None or queue in self._rated

    def note_own(self, queue: Queue) -> None:
        """Notes that a group of a queue has a rate of its own."""
        self._rated.add(queue)

    def forget(self, queue: Queue) -> None:
        """Forgets a queue that was deleted; its buckets are dropped as they are full."""
        self._rated.discard(queue)
        self._emptied.discard(queue)

    def change(
        self, queue: Queue, name: str, rate: RateLimit, mono_ms: int, *, is_new: bool
    ) -> None:
        """Puts another rate of a group in force: it keeps its tokens. One that had no rate, and has
        no bucket, has all.
        """
        if (queue, name) in self._buckets:
            self._bucket(queue, name, rate, mono_ms)
        elif is_new:
            self._buckets[queue, name] = TokenBucket(rate, mono_ms)

    def tokens(self, queue: Queue, name: str, rate: RateLimit, mono_ms: int) -> int:
        """Returns how many whole tokens a group has."""
        return self._bucket(queue, name, rate, mono_ms).tokens(mono_ms)

    def next_ms(self, queue: Queue, name: str, rate: RateLimit, price: int, mono_ms: int) -> int:
        """Returns when a group will have tokens for a job of this price."""
        return self._bucket(queue, name, rate, mono_ms).next_ms(price, mono_ms)

    def take(self, queue: Queue, name: str, rate: RateLimit, price: int, mono_ms: int) -> None:
        """Takes tokens of a group."""
        bucket = self._bucket(queue, name, rate, mono_ms)
        bucket.take(price, mono_ms)
        if (queue, name) not in self._buckets:
            self._buckets[queue, name] = bucket
            for _ in range(SWEPT_EACH):
                self._sweep_one(mono_ms)

    def _sweep_one(self, mono_ms: int) -> None:
        """Drops the bucket at the front if one that nobody knows of has as much; else it goes to
        the end.
        """
        key = next(iter(self._buckets))
        bucket = self._buckets.pop(key)
        if bucket.tokens(mono_ms) < self._new(key[0], bucket.limit, mono_ms).tokens(mono_ms):
            self._buckets[key] = bucket

    def _bucket(self, queue: Queue, name: str, rate: RateLimit, mono_ms: int) -> TokenBucket:
        bucket = self._buckets.get((queue, name))
        if bucket is None:
            return self._new(queue, rate, mono_ms)
        if bucket.limit is not rate and bucket.limit != rate:
            bucket.change(rate, mono_ms)
        return bucket

    def _new(self, queue: Queue, rate: RateLimit, mono_ms: int) -> TokenBucket:
        """Returns the bucket of a group that nothing is known of."""
        bucket = TokenBucket(rate, mono_ms)
        if queue in self._emptied:
            bucket.empty(self._started_ms)
        return bucket
