"""Jobs that others wait for ↔ the items of a checkpoint: how they ended, while somebody has to be
told, and the shards that are to be told. Who waits in this shard is kept with the jobs that wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.dependencies import Awaited, ParentEnd
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_awaited(record: Awaited) -> bytes:
    """Returns the blob of what is durable of a record."""
    return store_pb2.StoredAwaited(
        end=record.durable_end() or 0, shards=record.shards
    ).SerializeToString()


def load_awaited(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of records. An item that is lost costs a look-up of what became of the job."""
    for row in rows:
        message = store_pb2.StoredAwaited.FromString(row.blob)
        if not message.end and not message.shards:
            # It was written in vain, for a checkpoint that was abandoned.
            loading.shard.changes.awaited.to_delete.append(row.key)
            continue
        end = ParentEnd(message.end) if message.end else None
        loading.shard.dependencies.add_stored(row.key, end, tuple(message.shards))


def _save(_shard: Shard, job_id: int, record: Awaited) -> tuple[int, bytes]:
    record.stored = True
    return job_id, encode_awaited(record)


AWAITED = DurableKind(
    ItemKind.AWAITED,
    load=load_awaited,
    slices=by_id(
        ItemKind.AWAITED,
        owner=lambda shard: shard.dependencies.awaited,
        changes=lambda shard: shard.changes.awaited,
        save=_save,
    ),
)
