"""Key segments: the item keys under which a shard's idempotency keys are stored.

Keys are written once: each checkpoint writes the new ones as a segment. They are deleted by the
hour: when the window of an hour has ended, all of its segments are removed. So the item key of a
segment has the hour, and a counter within it:

    53 bits: shard (10) | hour (20) | counter (23)
"""

from __future__ import annotations

from jobline_server.engine import limits

COUNTER_BITS = 23
HOUR_BITS = limits.SEQUENCE_BITS - COUNTER_BITS
_COUNTER_MASK = (1 << COUNTER_BITS) - 1
_HOUR_MASK = (1 << HOUR_BITS) - 1


class KeySegments:
    """The segments of one shard: how many item keys of each hour are in use."""

    __slots__ = ("_given", "_shard")

    def __init__(self, shard: int) -> None:
        self._shard = shard
        self._given: dict[int, int] = {}

    def add(self, bucket: int) -> int:
        """Returns the item key of a new segment of this hour."""
        counter = self._given.get(bucket, 0)
        self._given[bucket] = counter + 1
        return self._key(bucket, counter)

    def take_back(self, item_key: int) -> None:
        """Frees the item key of a segment that was not stored, and those of its hour behind it."""
        bucket = item_key >> COUNTER_BITS & _HOUR_MASK
        if bucket in self._given:
            self._given[bucket] = min(self._given[bucket], item_key & _COUNTER_MASK)

    def note(self, item_key: int) -> None:
        """Notes a segment that is stored already."""
        bucket = item_key >> COUNTER_BITS & _HOUR_MASK
        counter = item_key & _COUNTER_MASK
        self._given[bucket] = max(self._given.get(bucket, 0), counter + 1)

    def ended(self, forgotten_ms: int) -> dict[int, list[int]]:
        """Returns the item keys of the hours that ended before `forgotten_ms`, by hour."""
        return {
            bucket: [self._key(bucket, counter) for counter in range(given)]
            for bucket, given in sorted(self._given.items())
            if bucket < forgotten_ms // limits.KEY_BUCKET_MS
        }

    def forget(self, bucket: int) -> None:
        """Notes that the segments of an hour were removed."""
        self._given.pop(bucket, None)

    def _key(self, bucket: int, counter: int) -> int:
        hour = bucket & _HOUR_MASK
        return self._shard << limits.SEQUENCE_BITS | hour << COUNTER_BITS | counter
