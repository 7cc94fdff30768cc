"""Which bytes the blob of a row has because of tags, headers, a group or a batch of its jobs.

To search for bytes is much faster than to decode, and the store can do it without knowing what a
blob means. It may find more than is wanted, as the same bytes may be part of a payload, and never
less; what is found is decoded then. Protobuf makes the bytes, from messages that have nothing but
the field in question, so they follow the fields that are written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from jobline.v1 import entry_pb2, job_pb2, store_pb2
from jobline_server.storage.blob_parts import BlobParts

# More batches are not looked for by their bytes: each takes a pass over each blob.
BATCHES_MAX = 16


def blob_parts(
    *,
    tags: Iterable[str] = (),
    headers: Iterable[tuple[str, str]] = (),
    group: str = "",
    batches: Collection[int] = (),
) -> BlobParts:
    """Returns what the blob of a row has in which any job has all of these tags and headers, the
    group if there is one, and one of the batches if there are any.
    """
    return tuple(_parts(tags, headers, group, batches))


def _parts(
    tags: Iterable[str], headers: Iterable[tuple[str, str]], group: str, batches: Collection[int]
) -> Iterator[tuple[bytes, ...]]:
    if group:
        yield (store_pb2.StoredJob(group=group).SerializeToString(),)
    for tag in sorted(tags):
        yield (job_pb2.JobOptions(tags=[tag]).SerializeToString(),)
    if batches and len(batches) <= BATCHES_MAX:
        messages = [job_pb2.JobOptions(batch_id=batch) for batch in sorted(batches)]
        yield tuple([message.SerializeToString() for message in messages])
    for name, value in headers:
        # Shared by all jobs of a row, or in a column, where name and values are apart.
        shared = job_pb2.JobOptions(headers={name: value}).SerializeToString()
        yield shared, entry_pb2.PayloadBlock(payloads=[value.encode()]).SerializeToString()
        yield shared, store_pb2.StoredHeaderColumn(key=name).SerializeToString()
