"""What the footer of an exported Parquet file says, and whether its pages can be read."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from jobline_pipeline.schemas import EVENTS, arrow_schema
from jobline_pipeline.tables.table import STRING

# Read as they are encoded, mostly: as numbers of words. Writing each row's out takes the longest.
_WORDS = [column.name for column in EVENTS if column.type == STRING]
# How much of a file is decoded at a time: rows may carry payloads.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 65_536, 32 << 20


def opened(path: str) -> Any:
    """Opens a local path, or a URI that Arrow knows (s3, gs, abfs, hdfs)."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" not in path:
        return pa.OSFile(path)
    system, inner = fs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    return system.open_input_file(inner)


def wrong_columns(schema: pa.Schema) -> str | None:
    """Says which column of the contract is missing or of another type."""
    contract = arrow_schema()
    for column in EVENTS:
        index = schema.get_field_index(column.name)
        if index < 0:
            if column.required:
                return f"it has no column {column.name!r}"
        elif _kind(schema.field(index).type) != _kind(contract.field(column.name).type):
            return (
                f"its column {column.name!r} is {schema.field(index).type}, not "
                f"{contract.field(column.name).type}"
            )
    return None


def _kind(kind: pa.DataType) -> str:
    """What two types must agree in: encodings, units of times and names of items may differ."""
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_timestamp(kind):
        # Spark has no nanoseconds, and takes times without a zone for something else.
        return "timestamp" if kind.tz and kind.unit != "ns" else str(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {_kind(kind.value_type)}"
    if pa.types.is_map(kind):
        return f"map of {_kind(kind.key_type)} to {_kind(kind.item_type)}"
    return str(kind)


def unknown_rows(metadata: pq.FileMetaData) -> str | None:
    """Says which required column has NULLs, by the statistics of the footer."""
    required = {column.name for column in EVENTS if column.required}
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            if chunk.path_in_schema not in required or chunk.statistics is None:
                continue
            if chunk.statistics.null_count:
                return f"{chunk.statistics.null_count} rows have no {chunk.path_in_schema!r}"
    return None


def misnamed(parquet: pq.ParquetFile, named: tuple[int, int]) -> str | None:
    """Says which offsets a file has that its name does not: they could be read twice. Without
    statistics the name is believed.
    """
    index = parquet.schema_arrow.get_field_index("offset")
    groups = range(parquet.metadata.num_row_groups)
    found = [parquet.metadata.row_group(group).column(index).statistics for group in groups]
    known = [each for each in found if each is not None and each.has_min_max]
    if not known:
        return None
    low, high = min(each.min for each in known), max(each.max for each in known)
    if named[0] <= low and high <= named[1]:
        return None
    return f"its name says offsets {named[0]} to {named[1]}, and it has {low} to {high}"


def range_of_at(parquet: pq.ParquetFile) -> tuple[int | None, int | None]:
    """Returns the first and last `at` in microseconds, from the footer or else from the column."""
    metadata = parquet.metadata
    index = parquet.schema_arrow.get_field_index("at")
    chunks = [metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)]
    if not metadata.num_rows:
        return None, None
    if all(chunk.statistics is not None and chunk.statistics.has_min_max for chunk in chunks):
        low = min(chunk.statistics.min for chunk in chunks)
        high = max(chunk.statistics.max for chunk in chunks)
    else:
        found = pc.min_max(parquet.read(columns=["at"])["at"])
        low, high = found["min"].as_py(), found["max"].as_py()
    unit = pa.timestamp("us", tz="UTC")
    return pa.scalar(low, unit).value, pa.scalar(high, unit).value


def decode(source: Any, parquet: pq.ParquetFile) -> None:
    """Reads every page of an open file; raises what Arrow raises for one that is damaged."""
    words = [name for name in _WORDS if name in parquet.schema_arrow.names]
    encoded = pq.ParquetFile(source, metadata=parquet.metadata, read_dictionary=words)
    for _ in batches_of(encoded):
        pass


def batches_of(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Returns all rows, some at a time."""
    metadata = parquet.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = max(sum(group.total_byte_size for group in groups), 1)
    rows = min(_ROWS_AT_ONCE, max(1, _BYTES_AT_ONCE * metadata.num_rows // size))
    yield from parquet.iter_batches(rows, use_threads=False)


def statistics_of(metadata: pq.FileMetaData, columns: Container[str]) -> dict[str, Any]:
    """Returns the statistics of some columns as Delta Lake keeps them for a file of a table."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        if name not in columns:
            continue
        groups = range(metadata.num_row_groups)
        found = [metadata.row_group(group).column(index).statistics for group in groups]
        if any(one is None or one.null_count is None for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        ranges = [one for one in found if one.has_min_max]
        if ranges and len(ranges) == len(found):
            least[name] = _shown(min(one.min for one in ranges), up_us=0)
            greatest[name] = _shown(max(one.max for one in ranges), up_us=999)
    return {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _shown(value: Any, *, up_us: int) -> Any:
    """Returns a value as JSON has it; Delta's times have milliseconds: the last is rounded up."""
    if isinstance(value, datetime):
        ms = (pa.scalar(value, pa.timestamp("us", tz="UTC")).value + up_us) // 1000
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"
    return value
