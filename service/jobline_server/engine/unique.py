"""Unique keys: up to one unfinished job for each key of a queue.

The job that was pushed first *holds* the key until it has ended. One more may be *parked* behind
it: it is BLOCKED, and takes the key over when the holder has ended. All this is known from the
live jobs (`Ties.claim`), so a checkpoint keeps nothing else of it.

A key may also be *throttled*: held until a time, whether or not its job has ended. Throttles
outlive jobs, so they are durable by themselves. Their times are those of `Age.at`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.changes import KindChanges
from jobline_server.engine.job import Job
from jobline_server.engine.keys import hash_of
from jobline_server.engine.split import SplitDict
from jobline_server.engine.tables import IdTable
from jobline_server.engine.ties import Claim
from jobline_server.engine.windows import WindowTable, file_under

UNIQUE_KEY = b"unique_key"


def unique_hash(queue: str, key: str) -> bytes:
    """Returns the hash of a unique key in a queue."""
    return hash_of(UNIQUE_KEY, queue, key.encode())


class Throttle:
    """A key that is held until `expires_ms`, since the push of `job_id`. `stored`: whether it is in
    a checkpoint, under that id. `filed`: the minute in which the sweep comes to it, or before it
    expires, and its place in the list of this minute.
    """

    __slots__ = ("expires_ms", "filed", "job_id", "place", "stored")

    def __init__(self, job_id: int, expires_ms: int) -> None:
        self.job_id = job_id
        self.expires_ms = expires_ms
        # ----
        self.stored = False
        self.filed = 0
        self.place = 0


class ThrottleTable(WindowTable[Throttle]):
    """The throttled keys of a shard by hash, each filed once: by the minute in which it expires."""

    __slots__ = ("_changes",)

    def __init__(self, changes: KindChanges[IdTable[bytes]]) -> None:
        super().__init__()
        self._changes = changes

    def find(self, key_hash: bytes, aged_ms: int) -> Throttle | None:
        """Returns the throttle of a key; None without, or if it has expired."""
        found = self.records.parts[key_hash[0]].get(key_hash)
        return found if found is not None and found.expires_ms > aged_ms else None

    def add(self, key_hash: bytes, throttle: Throttle) -> int:
        """Adds a throttle, or replaces an expired one; returns how many the table has more."""
        part = self.records.parts[key_hash[0]]
        before = part.get(key_hash)
        if before is not None:
            self._forget_written(before)
            self._unfile(before)
        part[key_hash] = throttle
        self._file(key_hash, throttle)
        if not throttle.stored:
            self._changes.to_write[throttle.job_id] = key_hash
        return before is None

    def extend(self, key_hash: bytes, until_ms: int, aged_ms: int) -> None:
        """Holds a throttled key until a later time; does nothing for other keys. It stays filed
        where it is, however often that happens: the sweep files it again.
        """
        throttle = self.find(key_hash, aged_ms)
        if throttle is not None and throttle.expires_ms < until_ms:
            throttle.expires_ms = until_ms
            self._changes.to_write[throttle.job_id] = key_hash

    def forget_one(self, key_hash: bytes) -> int:
        """Forgets a key before its time; returns how many were removed, 0 for other keys."""
        throttle = self.records.parts[key_hash[0]].get(key_hash)
        if throttle is None:
            return 0
        self._unfile(throttle)
        self._remove(key_hash, throttle)
        return 1

    def forget(self, aged_ms: int, limit: int) -> int:
        """Sweeps up to `limit` keys whose minute has passed; returns how many were removed."""
        removed = 0
        while limit > 0 and (hashes := self._take_due(aged_ms, limit)):
            limit -= len(hashes)
            for key_hash in hashes:
                throttle = self.records[key_hash]
                if throttle.expires_ms <= aged_ms:
                    self._remove(key_hash, throttle)
                    removed += 1
                else:
                    self._file(key_hash, throttle)
        return removed

    def _file(self, key_hash: bytes, throttle: Throttle) -> None:
        minute = throttle.filed = throttle.expires_ms // limits.MINUTE_MS
        file_under(self._minutes, minute, key_hash)
        throttle.place = len(self._minutes[minute]) - 1

    def _unfile(self, throttle: Throttle) -> None:
        """Takes a throttle off its list; the last one of the list gets its place."""
        hashes = self._minutes[throttle.filed]
        last = hashes.pop()
        if throttle.place < len(hashes):
            hashes[throttle.place] = last
            self.records[last].place = throttle.place
        elif not hashes:
            del self._minutes[throttle.filed]

    def _remove(self, key_hash: bytes, throttle: Throttle) -> None:
        del self.records[key_hash]
        self._forget_written(throttle)

    def _forget_written(self, throttle: Throttle) -> None:
        self._changes.to_write.pop(throttle.job_id, None)
        if throttle.stored:
            self._changes.to_delete.append(throttle.job_id)


class UniqueKeys:
    """The unique keys of a shard, by hash: who holds each, and who is parked behind it. `held` is
    the number of live jobs with a claim, so that shards without any need one test.
    """

    __slots__ = ("freed", "held", "holders", "parked", "throttled")

    def __init__(self, changes: KindChanges[IdTable[bytes]]) -> None:
        self.holders: SplitDict[int] = SplitDict()
        self.parked: SplitDict[int] = SplitDict()
        self.throttled = ThrottleTable(changes)
        self.held = 0
        self.freed: list[bytes] = []
        """Keys that lost their holder in the fact that is being applied, with a job behind it."""

    def holder(self, key_hash: bytes) -> int | None:
        """Returns the id of the job that holds a key, or held it last and is unfinished."""
        return self.holders.parts[key_hash[0]].get(key_hash)

    def behind(self, key_hash: bytes) -> int | None:
        """Returns the id of the job that is parked behind the holder of a key."""
        return self.parked.parts[key_hash[0]].get(key_hash)

    def take(self, job: Job) -> bytes:
        """Gives a new live job its key, or parks it behind the holder; returns the hash."""
        key_hash = unique_hash(job.queue.name, job.ties.unique_key)
        (self.parked if job.ties.claim.parked else self.holders)[key_hash] = job.id
        self.held += 1
        return key_hash

    def load(self, job: Job, find: Callable[[int], Job | None]) -> None:
        """Adds a job of a checkpoint. Of several with one key, which were pushed one after the
        other when its time was over, the one with the latest time holds it.
        """
        holder_id = self.holder(unique_hash(job.queue.name, job.ties.unique_key))
        holder = None if holder_id is None else find(holder_id)
        if job.ties.claim.parked or holder is None or _end_of(job) > _end_of(holder):
            self.take(job)
        else:
            self.held += 1

    def orphans(self) -> list[bytes]:
        """Returns the keys of parked jobs whose holder was not loaded, because it was damaged."""
        return [key_hash for key_hash in self.parked if self.holder(key_hash) is None]

    def free(self, job: Job) -> None:
        """Takes a job's key away, as it leaves the live ones."""
        key_hash = unique_hash(job.queue.name, job.ties.unique_key)
        self.held -= 1
        holders, parked = self.holders.parts[key_hash[0]], self.parked.parts[key_hash[0]]
        if holders.get(key_hash) == job.id:
            del holders[key_hash]
            if key_hash in parked:
                self.freed.append(key_hash)
        elif parked.get(key_hash) == job.id:
            del parked[key_hash]

    def hand_over(self, key_hash: bytes) -> int | None:
        """Gives a key without a holder to the job behind it; returns its id, None without one."""
        job_id = self.parked.parts[key_hash[0]].pop(key_hash, None)
        if job_id is not None:
            self.holders[key_hash] = job_id
        return job_id


def _end_of(job: Job) -> float:
    return job.ties.claim.until_ms or float("inf")


def has_let_go(job: Job, aged_ms: int) -> bool:
    """Returns whether the time is over for which a job holds its unique key."""
    return 0 < job.ties.claim.until_ms <= aged_ms


def held_until(job: Job, until_ms: int) -> None:
    """Has a job hold its key until this time."""
    claim = job.ties.claim
    claim = Claim(until_ms, claim.first_ms, claim.parked, claim.throttles)
    job.ties = job.ties.with_claim(claim)


def let_go(job: Job) -> None:
    """Makes a parked job one that holds its key."""
    job.ties = job.ties.with_claim(replace(job.ties.claim, parked=False))
