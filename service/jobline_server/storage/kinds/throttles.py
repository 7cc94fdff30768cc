"""Throttled unique keys ↔ the items of a checkpoint, each under the id of the job that was pushed
with its key.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.apply.bookkeeping import mark_job
from jobline_server.engine.shard import Shard
from jobline_server.engine.unique import Throttle, let_go
from jobline_server.engine.values import JobState
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_throttle(key_hash: bytes, throttle: Throttle) -> bytes:
    """Returns the blob of a throttled key."""
    message = store_pb2.StoredThrottle()
    message.hash = key_hash
    message.id = throttle.job_id
    message.until_ms = throttle.expires_ms
    return message.SerializeToString()


def decode_throttle(blob: bytes) -> tuple[bytes, Throttle]:
    """Returns the hash and the throttle in a blob."""
    message = store_pb2.StoredThrottle.FromString(blob)
    throttle = Throttle(message.id, message.until_ms)
    throttle.stored = True
    return message.hash, throttle


def load_throttles(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of throttled keys."""
    shard = loading.shard
    for row in rows:
        key_hash, throttle = decode_throttle(row.blob)
        shard.load.throttles += shard.unique.throttled.add(key_hash, throttle)


def _unblock_orphans(loading: Loading) -> bool:
    """Makes jobs READY that wait for a holder of their key which was set apart."""
    shard = loading.shard
    for key_hash in shard.unique.orphans():
        job_id = shard.unique.hand_over(key_hash)
        job = None if job_id is None else shard.jobs.find(job_id)
        if job is not None:
            let_go(job)
            job.state, job.run_at_ms = JobState.READY, 0
            job.queue.counts[JobState.BLOCKED] -= 1
            job.order = shard.tail_order()
            loading.ready[job.queue].append(job)
            mark_job(shard, job)
    return False


def _save(_shard: Shard, key_hash: bytes, throttle: Throttle) -> tuple[int, bytes]:
    throttle.stored = True
    return throttle.job_id, encode_throttle(key_hash, throttle)


THROTTLES = DurableKind(
    ItemKind.THROTTLE,
    load=load_throttles,
    slices=by_id(
        ItemKind.THROTTLE,
        owner=lambda shard: shard.unique.throttled.records,
        changes=lambda shard: shard.changes.throttles,
        save=_save,
    ),
    end_loading=_unblock_orphans,
)
