"""Keys: what makes a second push the first one again.

A job key stands for one job, a request id for all the jobs of one push: both are a hash that
points to a run of ids. Hashes stand in a dictionary for the whole window and are never evicted
before; they are forgotten by the hour in which their window ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from jobline_server.engine import limits

JOB_KEY = b"job_key"
REQUEST_ID = b"request_id"


def hash_of(kind: bytes, queue: str, key: bytes) -> bytes:
    """16 bytes for a key of one kind in one queue; kinds and queues never meet, as no name holds
    NUL.
    """
    return blake2b(queue.encode() + b"\0" + key, digest_size=16, person=kind).digest()


def digest_of(payload: bytes) -> int:
    """63 bits of a payload, to tell a repeat from a mistake."""
    return int.from_bytes(blake2b(payload, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """Ids `first_id … first_id + count − 1`, known by a key until `expires_ms`."""

    first_id: int
    count: int
    digest: int
    expires_ms: int


class KeyTable:
    """All keys of a shard. `unsaved` are those that no checkpoint holds yet, by bucket; `volatile`
    are those of jobs that are never written: such a key goes with the process, as its job does.
    """

    __slots__ = ("_buckets", "records", "unsaved", "volatile")

    def __init__(self) -> None:
        self.records: dict[bytes, KeyRecord] = {}
        self._buckets: dict[int, list[bytes]] = {}
        self.unsaved: dict[int, list[bytes]] = {}
        self.volatile: set[bytes] = set()

    def find(self, key_hash: bytes, wall_ms: int) -> KeyRecord | None:
        """The record of a key whose window has not ended."""
        record = self.records.get(key_hash)
        return record if record is not None and record.expires_ms > wall_ms else None

    def add(
        self, key_hash: bytes, record: KeyRecord, *, saved: bool = False, volatile: bool = False
    ) -> None:
        """Remembers a key. A key whose window had ended is taken over."""
        self.records[key_hash] = record
        bucket = record.expires_ms // limits.KEY_BUCKET_MS
        self._buckets.setdefault(bucket, []).append(key_hash)
        if volatile:
            self.volatile.add(key_hash)
            return
        self.volatile.discard(key_hash)
        if not saved:
            self.unsaved.setdefault(bucket, []).append(key_hash)

    def next_expiry_ms(self) -> int | None:
        """When the oldest bucket has ended as a whole."""
        oldest = min(self._buckets, default=None)
        return None if oldest is None else (oldest + 1) * limits.KEY_BUCKET_MS

    def expire(self, before_ms: int) -> int:
        """Forgets the buckets that ended before this moment, and says how many keys went."""
        gone = 0
        last = before_ms // limits.KEY_BUCKET_MS
        for bucket in [b for b in self._buckets if b < last]:
            for key_hash in self._buckets.pop(bucket):
                record = self.records.get(key_hash)
                if record is not None and record.expires_ms // limits.KEY_BUCKET_MS == bucket:
                    del self.records[key_hash]
                    self.volatile.discard(key_hash)
                    gone += 1
            self.unsaved.pop(bucket, None)
        return gone
