"""What one batch of exported files does to the tables.

    look at the files ──▶ bronze events ──▶ silver (append) ──▶ gold (made again where touched)
                                       └──▶ files: what became of each

Every write is left out where the batch has done it before, so a batch that was cut off runs again
from the beginning. The look at the files reads every page: a damaged one shows there, before any
table has rows of its file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from jobline_pipeline import history
from jobline_pipeline.bronze import add_events, exported
from jobline_pipeline.gold import make_gold
from jobline_pipeline.history import ExportedFile, Plan, Span
from jobline_pipeline.store import Batch, Store
from jobline_pipeline.tables import attempts, events, files, jobs, open_jobs
from jobline_pipeline.tables.slo import Objective
from jobline_pipeline.tables.table import INT, LONG, STRING, TIME
from jobline_pipeline.windows import is_within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ARROW: dict[DataType, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    LONG: pa.int64(),
    TIME: pa.timestamp("us", tz="UTC"),
}
# Footers are small: opening a file is waiting, not work.
_LOOKERS = 8
# Tables that are written at the same time: one computes while another commits.
_WRITERS = 3
# Of how many hours folders are asked for by name, rather than all.
_FOLDERS_MAX = 500


@dataclass(frozen=True, slots=True)
class Counts:
    """What a batch did: files and rows."""

    taken: int
    repeated: int
    bad: int
    rows: int
    rows_apart: int


@dataclass(frozen=True, slots=True)
class Work:
    """One batch: its files with their sizes, and the moment that it takes for the present."""

    files: Sequence[tuple[str, int]]
    batch: Batch
    now_us: int
    objectives: Sequence[Objective] = ()


def ingest(store: Store, work: Work, tell: Callable[[str], None]) -> Counts:
    """Brings all tables up to date with the files of one batch; `tell` hears of each step."""
    tell(f"looking at {len(work.files)} files")
    planned = _plan(store, work)
    if planned.read:
        tell(f"events of {len(planned.read)} files")
        add_events(store, planned.read, work.batch)
        _make_silver(store, work, planned, tell)
    store.append(files.TABLE, _ledger(store, work, planned), work.batch)
    if planned.read:
        make_gold(store, work.batch, _spans(planned), work.objectives, tell)
    return Counts(
        taken=len(planned.read),
        repeated=len(planned.repeated),
        bad=len(planned.bad),
        rows=sum(piece.rows for piece in planned.read),
        rows_apart=sum(piece.rows_apart for piece in planned.read),
    )


def _plan(store: Store, work: Work) -> Plan:
    def look(file: tuple[str, int]) -> ExportedFile:
        return history.look_at(*file, now_us=work.now_us, thoroughly=True)

    with ThreadPoolExecutor(_LOOKERS) as pool:
        seen = list(pool.map(look, work.files))
    return history.plan(seen, _known(store, work.batch, seen), work.now_us)


def _known(
    store: Store, batch: Batch, seen: Sequence[ExportedFile]
) -> dict[tuple[str, int], list[Span]]:
    """Returns the offsets that other batches have read of the same hours."""
    known: dict[tuple[str, int], list[Span]] = defaultdict(list)
    folders = {file.folder for file in seen}
    ledger = store.read(files.TABLE).where(F.col("status").isin("taken", "partly"))
    ledger = ledger.where((F.col("query") != batch.query) | (F.col("batch") < batch.number))
    if len(folders) <= _FOLDERS_MAX:
        ledger = ledger.where(F.col("folder").isin(*folders))
    for row in ledger.select("folder", "shard", "first_offset", "last_offset").collect():
        known[row["folder"], row["shard"]].append((row["first_offset"], row["last_offset"]))
    return known


def _make_silver(store: Store, work: Work, planned: Plan, tell: Callable[[str], None]) -> None:
    rows = events.make(exported(store, planned.read))
    spans = _spans(planned)
    first_us = min(low for low, _ in spans)

    def add_attempts() -> None:
        store.append(attempts.TABLE, attempts.make(rows), work.batch)

    def add_jobs() -> None:
        store.append(jobs.TABLE, jobs.make(rows), work.batch)

    tell("attempts and jobs")
    with ThreadPoolExecutor(_WRITERS) as pool:
        for done in [pool.submit(add_attempts), pool.submit(add_jobs)]:
            done.result()
    tell("open jobs")
    # What opened at a moment ended at that moment or later, so earlier ends need not be read.
    later = [(first_us, work.now_us + history.AHEAD_US + 1)]
    ended = store.read(jobs.TABLE).where(is_within("ended_at", later, "date"))
    opened = store.read(open_jobs.TABLE).unionByName(open_jobs.openings(rows))
    store.overwrite(open_jobs.TABLE, open_jobs.make(opened, ended), work.batch)


def _spans(planned: Plan) -> list[tuple[int, int]]:
    """The times of the events that were read, per file."""
    return [
        (
            piece.file.first_at_us,
            min(piece.file.last_at_us, piece.until_us or piece.file.last_at_us),
        )
        for piece in planned.read
        if piece.file.first_at_us is not None and piece.file.last_at_us is not None
    ]


def _ledger(store: Store, work: Work, planned: Plan) -> DataFrame:
    """Rows of `files`: what became of each file."""
    rows = []
    for piece in planned.read:
        status = "taken" if piece.spans is None else "partly"
        apart = "rows lie in the future" if piece.rows_apart else None
        rows.append((piece.file, piece.rows, piece.rows_apart, status, apart))
    rows += [(file, 0, 0, "repeated", None) for file in planned.repeated]
    rows += [(file, 0, file.rows, "bad", file.problem) for file in planned.bad]
    shown = [
        (
            file.path,
            file.folder,
            file.shard,
            file.first,
            file.last,
            file.bytes,
            taken,
            apart,
            status,
            reason,
            _time(file.first_at_us),
            _time(file.last_at_us),
            work.batch.query,
            work.batch.number,
        )
        for file, taken, apart, status, reason in rows
    ]
    return _as_frame(store.spark, shown)


def _as_frame(spark: SparkSession, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Returns rows of `files`. A table of Arrow needs no process of Python, a list of rows does."""
    names = [column.name for column in files.TABLE.columns]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrow = pa.table(
        [
            pa.array(column, _ARROW[c.type])
            for column, c in zip(columns, files.TABLE.columns, strict=True)
        ],
        names=names,
    )
    return files.TABLE.conform(spark.createDataFrame(arrow)).coalesce(1)


def _time(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)
