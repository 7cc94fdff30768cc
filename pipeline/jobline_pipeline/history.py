"""Looks at exported files before Spark reads them: which are new, repeated, or bad.

Only names and footers are read. A file holds all rows of its shard and hour between the offsets in
its name, so a file whose offsets are all known is dropped whole, and one that overlaps is read for
the missing offsets alone. Nothing is skipped silently: what is not read has a `problem`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobline_pipeline.footers import (
    decode,
    misnamed,
    opened,
    range_of_at,
    unknown_rows,
    wrong_columns,
)
from jobline_pipeline.schemas import FILE_NAME

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

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the file are read."""
        return self.spans is None and self.until_us is None


@dataclass(slots=True)
class Plan:
    """What a batch does with its files."""

    read: list[Piece] = field(default_factory=list)
    repeated: list[ExportedFile] = field(default_factory=list)
    bad: list[ExportedFile] = field(default_factory=list)


def look_at(path: str, size: int, *, now_us: int, thoroughly: bool = False) -> ExportedFile:
    """Reads the name and the footer of a file; `thoroughly` also all of its pages.

    A damaged page must show before any table has rows of its file.
    """
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
        with opened(path) as source:
            parquet = pq.ParquetFile(source)
            wrong = (
                wrong_columns(parquet.schema_arrow)
                or unknown_rows(parquet.metadata)
                or misnamed(parquet, (found.first, found.last))
            )
            if wrong:
                return replace(found, problem=wrong)
            if thoroughly:
                decode(source, parquet)
            first_at, last_at = range_of_at(parquet)
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
    with opened(file.path) as source:
        columns = pq.read_table(source, columns=["offset", "at"])
    until = limit if is_ahead else None
    rows = pc.sum(wanted_of(columns, spans, until)).as_py() or 0
    every = pc.sum(wanted_of(columns, spans, None)).as_py() or 0
    return Piece(file, spans, until_us=until, rows=rows, rows_apart=every - rows)


def wanted_of(rows: pa.Table, spans: Sequence[Span] | None, until_us: int | None) -> pa.Array:
    """Says of each row whether its `offset` is in the spans, and its `at` not after a time (µs)."""
    wanted = pa.chunked_array([pa.repeat(pa.scalar(value=spans is None), rows.num_rows)])
    for first, last in spans or ():
        above = pc.greater_equal(rows["offset"], first)
        wanted = pc.or_(wanted, pc.and_(above, pc.less_equal(rows["offset"], last)))
    if until_us is not None:
        wanted = pc.and_(wanted, pc.less_equal(microseconds(rows["at"]), until_us))
    return wanted


def microseconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns times as microseconds since 1970, whatever their unit."""
    return times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
