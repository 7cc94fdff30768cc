"""Throttled unique keys ↔ the items of a checkpoint, each under the id of the job that was pushed
with its key.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.shard import Shard
from jobline_server.engine.unique import Throttle
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
)
