"""Limiters ↔ the items of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.limiters import fill_limiter, limiter_from_message


def encode_limiter(limiter: LimiterSettings) -> bytes:
    """Returns the blob of a limiter."""
    message = store_pb2.StoredLimiter()
    fill_limiter(message, limiter)
    return message.SerializeToString()


def decode_limiter(blob: bytes) -> LimiterSettings:
    """Returns the limiter in a blob."""
    return limiter_from_message(store_pb2.StoredLimiter.FromString(blob))


def load_limiters(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of limiters."""
    for row in rows:
        limiter = decode_limiter(row.blob)
        loading.shard.own_limiters[limiter.name] = limiter
        loading.shard.use_ids(limiter.number, 1)


def _save(_shard: Shard, _name: str, limiter: LimiterSettings) -> tuple[int, bytes]:
    return limiter.number, encode_limiter(limiter)


LIMITERS = DurableKind(
    ItemKind.LIMITER,
    load=load_limiters,
    slices=by_id(
        ItemKind.LIMITER,
        owner=lambda shard: shard.own_limiters,
        changes=lambda shard: shard.changes.limiters,
        save=_save,
    ),
)
