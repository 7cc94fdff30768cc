"""Looks at exported files before Spark reads them: which are new, repeated, or bad.

Only names and footers are read. A file holds all rows of its shard and hour between the offsets in
its name, so a file whose offsets are all known is dropped whole, and one that overlaps is read for
the missing offsets alone. Nothing is skipped silently: what is not read has a `problem`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from jobline_pipeline.schemas import EVENTS, FILE_NAME, arrow_schema

# Clocks of servers may be ahead of ours by this much.
AHEAD_US = 3_600_000_000

Span = tuple[int, int]  # first and last offset, both included


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file: `problem` says why it cannot be read at all."""

    path: str
    folder: str = ""
    shard: int = -1
    first: int = -1
    last: int = -1
    rows: int = 0
    bytes: int = 0
    first_at_us: int | None = None
    last_at_us: int | None = None
    problem: str | None = None

    @property
    def place(self) -> tuple[str, int]:
        """Where its offsets count: its hour and its shard."""
        return self.folder, self.shard


@dataclass(frozen=True, slots=True)
class Piece:
    """What is to be read of a file: `spans` of offsets, None for all; no rows after `until_us`.

    `rows` are read, `rows_apart` are those after `until_us`.
    """

    file: ExportedFile
    spans: tuple[Span, ...] | None = None
    until_us: int | None = None
    rows: int = 0
    rows_apart: int = 0


@dataclass(slots=True)
class Plan:
    """What a batch does with its files."""

    read: list[Piece] = field(default_factory=list)
    repeated: list[ExportedFile] = field(default_factory=list)
    bad: list[ExportedFile] = field(default_factory=list)


def look_at(path: str, size: int, *, now_us: int, thoroughly: bool = False) -> ExportedFile:
    """Reads the name and the footer of a file; `thoroughly` also all of its pages."""
    folder = "/".join(path.split("/")[-3:-1])
    name = FILE_NAME.match(path.rpartition("/")[2])
    found = ExportedFile(path, folder=folder, bytes=size)
    if name is None:
        return replace(
            found, problem="its name is not <shard>-<first offset>-<last offset>.parquet"
        )
    found = replace(
        found, shard=int(name["shard"]), first=int(name["first"]), last=int(name["last"])
    )
    try:
        with _open(path) as source:
            parquet = pq.ParquetFile(source)
            if thoroughly:
                for group in range(parquet.num_row_groups):
                    parquet.read_row_group(group)
            wrong = (
                _wrong_columns(parquet.schema_arrow)
                or _unknown_rows(parquet.metadata)
                or _misnamed(parquet, (found.first, found.last))
            )
            if wrong:
                return replace(found, problem=wrong)
            first_at, last_at = _range_of_at(parquet)
            rows = parquet.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        said = str(error).partition("\n")[0][:200]
        return replace(found, problem=f"it is not whole, or not Parquet: {said}")
    found = replace(found, rows=rows, first_at_us=first_at, last_at_us=last_at)
    if first_at is not None and first_at > now_us + AHEAD_US:
        return replace(found, problem="its events lie in the future")
    return found


def plan(
    files: Iterable[ExportedFile], known: dict[tuple[str, int], list[Span]], now_us: int
) -> Plan:
    """Decides what is read of each file; `known` are the offsets that earlier batches have read."""
    made = Plan()
    covered: dict[tuple[str, int], list[Span]] = defaultdict(list)
    for place, spans in known.items():
        covered[place] = merged(spans)
    # The longest of those that begin alike comes first, so that the others are repeated whole.
    for file in sorted(files, key=lambda one: (one.folder, one.shard, one.first, -one.last)):
        if file.problem:
            made.bad.append(file)
            continue
        missing = without((file.first, file.last), covered[file.place])
        if not missing:
            made.repeated.append(file)
            continue
        whole = missing == [(file.first, file.last)]
        made.read.append(_piece(file, None if whole else tuple(missing), now_us))
        covered[file.place] = merged([*covered[file.place], (file.first, file.last)])
    return made


def merged(spans: Iterable[Span]) -> list[Span]:
    """Returns the same offsets as sorted spans that do not touch."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def without(span: Span, covered: Sequence[Span]) -> list[Span]:
    """Returns what is left of a span; `covered` is sorted and merged."""
    left, (first, last) = [], span
    for begin, end in covered:
        if end < first:
            continue
        if begin > last:
            break
        if begin > first:
            left.append((first, begin - 1))
        first = end + 1
    if first <= last:
        left.append((first, last))
    return left


def _piece(file: ExportedFile, spans: tuple[Span, ...] | None, now_us: int) -> Piece:
    """What to read of a file. Offsets have gaps, so rows of a part are counted, not computed."""
    limit = now_us + AHEAD_US
    is_ahead = file.last_at_us is not None and file.last_at_us > limit
    if spans is None and not is_ahead:
        return Piece(file, rows=file.rows)
    with _open(file.path) as source:
        columns = pq.read_table(source, columns=["offset", "at"])
    wanted = pa.scalar(value=spans is None)
    for first, last in spans or ():
        above = pc.greater_equal(columns["offset"], first)
        wanted = pc.or_(wanted, pc.and_(above, pc.less_equal(columns["offset"], last)))
    later = pc.greater(columns["at"].cast(pa.int64()), limit)
    apart = pc.sum(pc.and_(wanted, later)).as_py() or 0
    rows = pc.sum(pc.and_(wanted, pc.invert(later))).as_py() or 0
    return Piece(file, spans, until_us=limit if is_ahead else None, rows=rows, rows_apart=apart)


def _open(path: str) -> Any:
    """Opens a local path, or a URI that Arrow knows (s3, gs, abfs, hdfs)."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" not in path:
        return pa.OSFile(path)
    system, inner = fs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    return system.open_input_file(inner)


def _wrong_columns(schema: pa.Schema) -> str | None:
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


def _unknown_rows(metadata: pq.FileMetaData) -> str | None:
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


def _misnamed(parquet: pq.ParquetFile, named: Span) -> str | None:
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


def _range_of_at(parquet: pq.ParquetFile) -> tuple[int | None, int | None]:
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
