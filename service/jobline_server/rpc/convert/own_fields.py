"""Serialises what jobs of a run have of their own: as columns beside payloads, or as the fields of
one job.

A column of headers goes out as the block of bytes that came in.
"""

from __future__ import annotations

from jobline.v1 import job_pb2
from jobline_server.engine.columns import LotColumns
from jobline_server.wire.raw_fields import tag_of, varint

_COLUMNS_TAG = tag_of(job_pb2.LeasedRun.DESCRIPTOR, "header_columns")
_KEY_TAG = tag_of(job_pb2.HeaderColumn.DESCRIPTOR, "key")
_JOB_KEYS_TAG = tag_of(job_pb2.LeasedRun.DESCRIPTOR, "job_keys")
_JOB_KEY_TAG = tag_of(job_pb2.LeasedJob.DESCRIPTOR, "job_key")


def column_fields(columns: LotColumns) -> bytes:
    """Returns the fields of a `LeasedRun` for the columns beside its payloads."""
    parts: list[bytes] = []
    for key, values in columns.headers:
        name = key.encode()
        size = varint(len(name))
        length = len(_KEY_TAG) + len(size) + len(name) + len(values.block)
        parts += (_COLUMNS_TAG, varint(length), _KEY_TAG, size, name, values.block)
    for job_key in columns.job_keys or ():
        parts += (_JOB_KEYS_TAG, varint(len(job_key)), job_key)
    return b"".join(parts)


def own_fields(columns: LotColumns, index: int) -> bytes:
    """Returns the fields of a `LeasedJob` for what one job has of its own."""
    fields = b""
    headers = columns.headers_of(index)
    if headers:
        options = job_pb2.JobOptions(headers=headers)
        fields = job_pb2.LeasedJob(options=options).SerializeToString()
    if columns.job_keys is not None and (job_key := columns.job_keys[index]):
        fields += _JOB_KEY_TAG + varint(len(job_key)) + job_key
    return fields
