"""Unique keys: who holds one, for the verbs that ask."""

from __future__ import annotations

from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.records import JobRecord
from jobline_server.engine.unique import has_let_go, unique_hash
from jobline_server.engine.values import DEFAULT_SETTINGS, Now, QueueSettings
from jobline_server.engine.view import ShardView


def settings_of(shard: ShardView, queue: str) -> QueueSettings:
    """Returns the settings of a queue, which may not be there yet."""
    known = shard.queues.get(queue)
    return DEFAULT_SETTINGS if known is None else known.settings


def has_unique_keys(rows: JobColumns) -> bool:
    """Returns whether a job of a push has a unique key."""
    return any(ties.unique_key for ties in rows.ties)


def blocked_rows(rows: JobColumns) -> list[int]:
    """Returns the indexes of the jobs that are parked behind the holders of their keys."""
    return [index for index, ties in enumerate(rows.ties) if ties.claim.parked]


def is_key_taken(shard: ShardView, aged_ms: int, record: JobRecord) -> bool:
    """Returns whether another job holds the unique key of an ended job."""
    holder_id = _holder(shard, aged_ms, unique_hash(record.queue, record.ties.unique_key))
    return holder_id not in {None, record.id}


def key_holder(shard: ShardView, now: Now, queue: str, name: str) -> int | None:
    """Returns the id of the job that holds or throttles a unique key; None if it is free."""
    return _holder(shard, shard.age.at(now), unique_hash(queue, name))


def _holder(shard: ShardView, aged_ms: int, key_hash: bytes) -> int | None:
    unique = shard.unique
    holder_id = unique.holder(key_hash)
    holder = None if holder_id is None else shard.jobs.find(holder_id)
    if holder is not None and not has_let_go(holder, aged_ms):
        return holder.id
    # The job behind one whose time is over is next, before all that come now.
    behind_id = unique.behind(key_hash)
    if behind_id is not None:
        return behind_id
    throttle = unique.throttled.find(key_hash, aged_ms)
    return None if throttle is None else throttle.job_id
