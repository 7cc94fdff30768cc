"""Keys: find the jobs of an earlier push when it is repeated.

A job key names one job, a request id all jobs of one push: both are a hash that points to a run of
ids. Hashes stay in a table for the whole window and are never evicted earlier. Each kind has its
own table and limit, so that neither uses up the other's room.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

from jobline_server.engine import limits
from jobline_server.engine.split import SplitDict
from jobline_server.engine.windows import WindowTable, file_under

JOB_KEY = b"job_key"
REQUEST_ID = b"request_id"


def hash_of(kind: bytes, queue: str, key: bytes) -> bytes:
    """Returns a hash of 16 bytes for a key of one kind in one queue. Queue names hold no NUL, so
    the pair of queue and key is unambiguous.
    """
    return blake2b(queue.encode() + b"\0" + key, digest_size=16, person=kind).digest()


def digest_of(payload: bytes) -> int:
    """Returns 63 bits of a hash of a payload, to tell a repeat from another job with its key."""
    return int.from_bytes(blake2b(payload, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The ids `first_id … first_id + count − 1` that a key names until `expires_ms`. With `count` 0
    it was forgotten by hand: the record takes the place of the one in the checkpoint. `stored_rows`
    are those rows of a push that were stored, a bit each; empty for all.
    """

    first_id: int
    count: int
    digest: int
    expires_ms: int
    stored_rows: bytes = b""


class KeyTable(WindowTable[KeyRecord]):
    """The keys of one kind of a shard. `unsaved` are those that no checkpoint holds yet, by the
    hour in which they expire; `volatile` are those of volatile jobs, lost with the process as the
    jobs are.
    """

    __slots__ = ("forgotten_ms", "unsaved", "volatile")

    def __init__(self) -> None:
        super().__init__()
        self.forgotten_ms = 0
        """All entries that expired before this time are swept."""
        self.unsaved: dict[int, list[bytes]] = {}
        self.volatile: SplitDict[None] = SplitDict()

    def find(self, key_hash: bytes, aged_ms: int) -> KeyRecord | None:
        """Returns the record of a key; None if it is unknown or expired."""
        record = self.records.parts[key_hash[0]].get(key_hash)
        is_known = record is not None and record.expires_ms > aged_ms and record.count
        return record if is_known else None

    def was_forgotten(self, key_hash: bytes, first_id: int) -> bool:
        """Returns whether a key that named this job was forgotten by hand and is still free."""
        record = self.records.parts[key_hash[0]].get(key_hash)
        return record is not None and not record.count and record.first_id == first_id

    def add(
        self, key_hash: bytes, record: KeyRecord, *, saved: bool = False, volatile: bool = False
    ) -> int:
        """Adds a key or replaces an expired one; returns how many keys the table has more."""
        part = self.records.parts[key_hash[0]]
        is_new = key_hash not in part
        if not is_new and not part[key_hash].count and not saved:
            # The checkpoint may have both, and believes the one that expires later.
            expires_ms = max(record.expires_ms, part[key_hash].expires_ms + 1)
            record = replace(record, expires_ms=expires_ms)
        part[key_hash] = record
        file_under(self._minutes, record.expires_ms // limits.MINUTE_MS, key_hash)
        if volatile:
            self.volatile[key_hash] = None
            return is_new
        if not is_new:
            self.volatile.pop(key_hash, None)
        if not saved:
            file_under(self.unsaved, record.expires_ms // limits.KEY_BUCKET_MS, key_hash)
        return is_new

    def forget_one(self, key_hash: bytes) -> None:
        """Forgets a key for good, on disk as well; does nothing if it is not in the table."""
        record = self.records.parts[key_hash[0]].get(key_hash)
        if record is not None:
            is_volatile = key_hash in self.volatile
            gone = KeyRecord(record.first_id, 0, record.digest, record.expires_ms + 1)
            self.add(key_hash, gone, volatile=is_volatile)

    def written(self, hour: int, hashes: list[bytes]) -> list[tuple[bytes, KeyRecord]]:
        """Returns the durable keys among `hashes` that expire in this hour. Others were replaced
        since, and are listed under another hour or volatile.
        """
        durable = [key_hash for key_hash in dict.fromkeys(hashes) if key_hash not in self.volatile]
        found = [(key, self.records[key]) for key in durable if key in self.records]
        return [pair for pair in found if pair[1].expires_ms // limits.KEY_BUCKET_MS == hour]

    def forget(self, aged_ms: int, limit: int) -> int:
        """Sweeps up to `limit` keys whose minute has passed; returns how many were removed."""
        removed = 0
        while limit > 0 and (hashes := self._take_due(aged_ms, limit)):
            limit -= len(hashes)
            for key_hash in hashes:
                part = self.records.parts[key_hash[0]]
                record = part.get(key_hash)
                if record is not None and record.expires_ms <= aged_ms:
                    del part[key_hash]
                    self.volatile.pop(key_hash, None)
                    removed += 1
        if not self.is_due(aged_ms):
            self.forgotten_ms = aged_ms // limits.MINUTE_MS * limits.MINUTE_MS
            for hour in [h for h in self.unsaved if h < aged_ms // limits.KEY_BUCKET_MS]:
                del self.unsaved[hour]
        return removed
