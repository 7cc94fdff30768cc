"""The columns of the files, with their types. Columns are only ever added."""

from __future__ import annotations

from pathlib import PurePosixPath

import pyarrow as pa

SCHEMA_VERSION = 1

_INT, _LONG, _STRING = pa.int32(), pa.int64(), pa.string()
_TIME = pa.timestamp("us", tz="UTC")

# Columns whose values are made of offsets and ids, or are the same in all rows of a file.
SHARD, OFFSET, AT, JOB_ID, VERSION = "shard", "offset", "at", "job_id", "schema_version"
ALWAYS = frozenset({SHARD, OFFSET, AT, JOB_ID, VERSION})

SCHEMA = pa.schema(
    [
        (SHARD, _INT),
        (OFFSET, _LONG),
        (AT, _TIME),
        ("event", _STRING),
        ("queue", _STRING),
        ("name", _STRING),
        (JOB_ID, _LONG),
        ("group", _STRING),
        ("priority", _INT),
        ("delivery", _LONG),
        ("attempt", _INT),
        ("worker", _STRING),
        ("worker_version", _STRING),
        ("pushed_at", _TIME),
        ("ready_at", _TIME),
        ("leased_at", _TIME),
        ("first_leased_at", _TIME),
        ("run_at", _TIME),
        ("lease_until", _TIME),
        ("next_run_at", _TIME),
        ("attempts", _INT),
        ("stalls", _INT),
        ("releases", _INT),
        ("final", pa.bool_()),
        ("reason", _STRING),
        ("error_type", _STRING),
        ("error", _STRING),
        ("parent_id", _LONG),
        ("batch_id", _LONG),
        ("depends_on", pa.list_(_LONG)),
        ("tags", pa.list_(_STRING)),
        ("headers", pa.map_(_STRING, _STRING)),
        ("trace_id", _STRING),
        ("principal", _STRING),
        ("operation_id", _LONG),
        ("payload_bytes", _LONG),
        ("result_bytes", _LONG),
        (VERSION, _INT),
    ]
)


def path_of(shard: int, hour: int, first: int, last: int) -> PurePosixPath:
    """Returns the path of a file below the history. `hour` counts from 1970, UTC; the offsets are
    those of its first and last row.
    """
    moment = pa.scalar(hour * 3_600_000_000, _TIME).as_py()
    folder = f"events/date={moment:%Y-%m-%d}/hour={moment:%H}"
    return PurePosixPath(folder) / f"{shard}-{first}-{last}.parquet"
