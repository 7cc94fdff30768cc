"""Batches ↔ the items of a checkpoint: those of this shard, and what is still to be sent to the
home shards of others.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping

from jobline.v1 import store_pb2
from jobline_server.engine.batches import Batch, EndCounts
from jobline_server.engine.shard import Shard
from jobline_server.storage.codec.batches import batch_of, ends_of, fill_batch, fill_counts
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow


def encode_batch(batch_id: int, value: Batch | EndCounts) -> bytes:
    """Returns the blob of a batch, or of what is to be sent."""
    message = store_pb2.StoredBatch(id=batch_id)
    if isinstance(value, Batch):
        fill_batch(message, value)
    else:
        fill_counts(message.counts, (), [value.frozen()])
    return message.SerializeToString()


def load_batches(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of batches. Members of one that is lost run on, and nobody counts them."""
    table = loading.shard.batches
    for row in rows:
        message = store_pb2.StoredBatch.FromString(row.blob)
        if table.is_home(message.id):
            batch = batch_of(message)
            batch.stored = True
            table.add(batch)
            loading.shard.count_reports(batch.spec.held_bytes())
            loading.shard.use_ids(batch.id, 1)
        else:
            counts = table.unsent[message.id] = ends_of(message)
            counts.stored = True


def _end_loading(loading: Loading) -> bool:
    loading.shard.batches.finish_loading()
    return False


def _values(shard: Shard) -> Mapping[int, Batch | EndCounts]:
    values: ChainMap[int, Batch | EndCounts] = ChainMap()
    values.maps = [shard.batches.records, shard.batches.unsent]  # type: ignore[list-item]  # read only
    return values


def _save(_shard: Shard, batch_id: int, value: Batch | EndCounts) -> tuple[int, bytes]:
    value.stored = True
    return batch_id, encode_batch(batch_id, value)


BATCHES = DurableKind(
    ItemKind.BATCH,
    load=load_batches,
    slices=by_id(
        ItemKind.BATCH,
        owner=_values,
        changes=lambda shard: shard.changes.batches,
        save=_save,
    ),
    end_loading=_end_loading,
)
