"""Small typed tables, and files by the contract, from dictionaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from jobline_pipeline.schemas import arrow_schema

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Returns a moment so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def us(seconds: float) -> int:
    """Returns the same as microseconds since 1970."""
    return int(at(seconds).timestamp() * 1e6)


def frame(spark, schema, given):
    """Returns a DataFrame of a schema; what the dictionaries leave out is NULL."""
    return spark.createDataFrame([tuple(row.get(n) for n in schema.names) for row in given], schema)


def write_events(history, rows, *, shard=0, hour=12, first=None, last=None, schema=None):
    """Writes a file by the contract; its name says the offsets of its rows, or what is given."""
    offsets = [row["offset"] for row in rows]
    first = min(offsets) if first is None else first
    last = max(offsets) if last is None else last
    folder = history / "events" / "date=2026-11-02" / f"hour={hour:02}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shard}-{first}-{last}.parquet"
    schema = schema or arrow_schema()
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
    return path


def pushed(offset, job_id=None, **columns):
    """Returns an event: a job was pushed."""
    return {
        "shard": 0, "offset": offset, "at": at(offset), "event": "pushed", "queue": "mail",
        "name": "mail.send", "job_id": job_id or offset, "priority": 0, "payload_bytes": 10,
        **columns,
    }  # fmt: skip


def completed(offset, job_id, **columns):
    """Returns an event: a job was handed out a second before, and has completed."""
    return {
        "shard": 0, "offset": offset, "at": at(offset), "event": "completed", "queue": "mail",
        "name": "mail.send", "job_id": job_id, "priority": 0, "delivery": 1, "attempt": 1,
        "worker": "w1", "worker_version": "1", "pushed_at": at(offset - 3),
        "ready_at": at(offset - 3), "leased_at": at(offset - 1), "first_leased_at": at(offset - 1),
        "attempts": 1, "stalls": 0, "releases": 0, "final": True,
        **columns,
    }  # fmt: skip
