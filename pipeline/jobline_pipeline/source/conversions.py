"""The columns of jobs and events, and conversions between Jobline and Spark: events to Arrow, rows
to payloads; jobs to Arrow are in `job_rows`.

Events come as messages of the protocol and leave as record batches, column by column; columns that
a frame does not name are not read. Events come as runs, one row a run of ids, and are spread to
rows by Arrow. What is empty in the protocol is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from jobline.v1 import event_pb2, job_pb2
from jobline_pipeline.problems import PipelineError

_TYPES: Mapping[str, DataType] = {
    "bigint": LongType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "double": DoubleType(),
    "int": IntegerType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "strings": ArrayType(StringType()),
    "bigints": ArrayType(LongType()),
    "headers": MapType(StringType(), StringType()),
}


def _columns(text: str) -> StructType:
    # StructType.fromDDL needs a session, which the processes that plan reads do not have.
    pairs = (column.split() for column in text.split(","))
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


JOBS = _columns(
    "job_id bigint, queue string, name string, state string, payload binary, payload_bytes bigint,"
    " content_type string, job_key string, unique_key string, group string, priority int,"
    " tags strings, headers headers, batch_id bigint, depends_on bigints,"
    " pushed_at timestamp, run_at timestamp, ended_at timestamp, expires_at timestamp,"
    " attempts int, max_attempts int, stalls int, releases int, delivery bigint, worker string,"
    " progress double, result binary, error_type string, error string, reason string,"
    " cancel_requested boolean"
)
EVENTS = _columns(
    "shard int, offset bigint, at timestamp, event string, queue string, name string,"
    " job_id bigint, group string, state_before string, state string, delivery bigint, attempt int,"
    " worker string, run_at timestamp, reason string, error_type string, error string,"
    " progress double, message string, batch_id bigint, principal string"
)
# Columns for which the server has to send payloads and results.
WITH_PAYLOADS = {"payload", "result"}

_MICROS = 1_000_000
STATES: dict[int, str | None] = {
    number: name.removeprefix("JOB_STATE_").lower() for name, number in job_pb2.JobState.items()
}
REASONS: dict[int, str | None] = {
    number: name.removeprefix("END_REASON_").lower() for name, number in job_pb2.EndReason.items()
}
_Kinds = {
    number: name.removeprefix("EVENT_KIND_").lower() for name, number in event_pb2.EventKind.items()
}
STATES[0] = REASONS[0] = None  # unset is null


def micros(moment: Any) -> int:
    """Returns a timestamp of the protocol in microseconds."""
    return int(moment.seconds * _MICROS + moment.nanos // 1_000)


def arrow_schema(wanted: StructType, known: StructType, what: str) -> pa.Schema:
    """Returns the Arrow schema of a frame. Raises PipelineError for a column that is not known, or
    of another type.
    """
    types = {field.name: field.dataType for field in known.fields}
    for field in wanted.fields:
        if field.name not in types:
            message = f"{what} have no column {field.name}; there are {', '.join(types)}"
            raise PipelineError(message)
        if field.dataType != types[field.name]:
            kind = types[field.name].simpleString()
            raise PipelineError(
                f"column {field.name} of {what} is {kind}, not {field.dataType.simpleString()}"
            )
    return to_arrow_schema(wanted, timezone="UTC")


def runs_batch(runs: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Returns runs of events as rows, one an event, in their order."""
    events: list[Any] = []
    spans: list[tuple[int, int]] = []
    own: list[tuple[Any, int]] = []
    for run in runs:
        counts = run.counts or [1] * len(run.starts)
        spans += zip(run.starts, counts, strict=True) if run.starts else [(0, 1)]
        size = len(run.starts) or 1
        events += [run.shared] * size
        own += [(run, index) for index in range(size)]
    starts, counts = np.array(spans, np.int64).reshape(-1, 2).T
    rows = np.repeat(np.arange(len(spans)), counts)
    ends = np.cumsum(counts)
    columns = []
    for field in schema:
        if field.name == "job_id":
            ids = starts[rows] + np.arange(len(rows)) - np.repeat(ends - counts, counts)
            column = pa.array(ids, pa.int64(), mask=starts[rows] == 0)
        else:
            column = pa.array(_event_column(field.name, events, own), field.type).take(
                pa.array(rows)
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_WITH_PROGRESS = {
    event_pb2.EventKind.EVENT_KIND_PROGRESS,
    event_pb2.EventKind.EVENT_KIND_PHASE_COMPLETED,
}
_EVENT_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "shard": lambda event: event.shard,
    "offset": lambda event: event.offset,
    "at": lambda event: micros(event.at),
    "event": lambda event: _Kinds.get(event.kind, str(event.kind)),
    "queue": lambda event: event.queue or None,
    "group": lambda event: event.group or None,
    "state_before": lambda event: STATES.get(event.state_before),
    "state": lambda event: STATES.get(event.state),
    "reason": lambda event: REASONS.get(event.reason),
    "error_type": lambda event: event.error_type or None,
    "error": lambda event: event.error_message or None,
    "progress": lambda event: event.progress if event.kind in _WITH_PROGRESS else None,
    "message": lambda event: event.message or None,
    "batch_id": lambda event: event.batch_id or None,
    "principal": lambda event: event.principal or None,
}
# What each run of ids may have of its own: the column of the run, where it is not empty.
_OWN = {"name": "names", "delivery": "deliveries", "attempt": "attempts", "worker": "workers"}


def _event_column(name: str, events: Sequence[Any], own: Sequence[tuple[Any, int]]) -> list[Any]:
    if name == "run_at":
        return [_run_at(run, index) for run, index in own]
    if name not in _OWN:
        read = _EVENT_COLUMNS[name]
        return [read(event) for event in events]
    values = []
    for run, index in own:
        column = getattr(run, _OWN[name])
        values.append((column[index] if column else getattr(run.shared, name)) or None)
    return values


def _run_at(run: Any, index: int) -> int | None:
    if run.run_at_ms:
        return run.run_at_ms[index] * 1_000 or None
    return micros(run.shared.run_at) if run.shared.HasField("run_at") else None


def payloads_of(batch: pa.RecordBatch, column: str | None, others: Sequence[str]) -> list[bytes]:
    """Returns the payload of each row: the column's bytes or text, or, without a column, the other
    columns as a JSON object. Null is an empty payload.
    """
    if column is None:
        return list(_json_rows(batch.select(list(others))))
    values = batch.column(column)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.binary())
    elif not (pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)):
        raise PipelineError(f"column {column} is {values.type}: a payload is binary or text")
    return list(values.fill_null(b"").to_pylist())


def _json_rows(batch: pa.RecordBatch) -> Iterator[bytes]:
    encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_plain).encode
    names = batch.schema.names
    columns = [_entries(column) for column in batch.columns]
    if not columns:
        yield from [b"{}"] * batch.num_rows
    for row in zip(*columns, strict=True):
        yield encode(dict(zip(names, row, strict=True))).encode()


def _entries(column: pa.Array) -> list[Any]:
    """Returns a column's values; maps as objects, which Arrow gives as pairs."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if value is None else dict(value) for value in values]
    return values


def _plain(value: Any) -> Any:
    """Returns what JSON has for a value: ISO 8601 for times, text for bytes and decimals."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def texts_of(batch: pa.RecordBatch, column: str, *, is_key: bool = False) -> list[str | None]:
    """Returns a column as text. Raises PipelineError for a row without a key."""
    values = batch.column(column)
    if is_key and values.null_count:
        raise PipelineError(f"column {column} has rows without a key")
    return list(values.cast(pa.string()).to_pylist())


def moments_of(batch: pa.RecordBatch, column: str) -> list[datetime | None]:
    """Returns a column of timestamps as aware datetimes; those without a zone are UTC."""
    values = batch.column(column)
    if not pa.types.is_timestamp(values.type):
        raise PipelineError(f"column {column} is {values.type}: when a job runs is a timestamp")
    return [
        None if value is None else value if value.tzinfo else value.replace(tzinfo=UTC)
        for value in values.to_pylist()
    ]


def values_of(batch: pa.RecordBatch, column: str) -> list[Any]:
    """Returns the values of a column as Python has them, maps as dictionaries."""
    return _entries(batch.column(column))
