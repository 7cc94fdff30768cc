"""What one batch of exported files does to the tables.

    look at the files ──▶ bronze events ──▶ silver (append) ──▶ gold (made again where touched)
                                       └──▶ files: what became of each

Every write is left out where the batch has done it before, so a batch that was cut off runs again
from the beginning. A damaged page shows before any table has rows of its file: in the look, if
files are copied into `events`; else when Spark writes that table, first and with every column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from jobline_pipeline import history, local
from jobline_pipeline.gold import Gold, make_all
from jobline_pipeline.history import ExportedFile, Piece, Plan, Span
from jobline_pipeline.schemas import spark_schema
from jobline_pipeline.spark_failures import SPARK_FAILURES
from jobline_pipeline.sql import Rows, dialect_of, query
from jobline_pipeline.store import Batch, Store, Tables
from jobline_pipeline.tables import attempts, events, files, jobs, open_jobs
from jobline_pipeline.tables.slo import Objective
from jobline_pipeline.tables.table import INT, LONG, STRING, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobline_pipeline.local import Local

_ARROW: dict[DataType, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    LONG: pa.int64(),
    TIME: pa.timestamp("us", tz="UTC"),
}
# Opening a file is waiting; decoding it is work, for which Arrow needs no lock of Python.
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
    with local.opened(store) as here:
        planned = _plan(here or store, work, thoroughly=here is not None)
        if planned.read:
            tell(f"events of {len(planned.read)} files")
            planned = _take_events(store, here, work, planned)
        rows = here.of_batch(events.TABLE, work.batch) if here else None
        if here and (rows or not planned.read):
            _make_others(here, work, planned, rows, tell)
        else:
            exported = _exported(store, planned) if planned.read else None
            _make_others(store, work, planned, exported, tell)
    return Counts(
        taken=len(planned.read),
        repeated=len(planned.repeated),
        bad=len(planned.bad),
        rows=sum(piece.rows for piece in planned.read),
        rows_apart=sum(piece.rows_apart for piece in planned.read),
    )


def _plan(store: Tables[Any], work: Work, *, thoroughly: bool) -> Plan:
    def look(file: tuple[str, int]) -> ExportedFile:
        return history.look_at(*file, now_us=work.now_us, thoroughly=thoroughly)

    with ThreadPoolExecutor(_LOOKERS) as pool:
        seen = list(pool.map(look, work.files))
    return history.plan(seen, _known(store, work.batch, seen), work.now_us)


def _known(
    store: Tables[Any], batch: Batch, seen: Sequence[ExportedFile]
) -> dict[tuple[str, int], list[Span]]:
    """Returns the offsets that other batches have read of the same hours."""
    known: dict[tuple[str, int], list[Span]] = defaultdict(list)
    if not store.exists(files.TABLE):
        return known
    ledger = store.read(files.TABLE)
    say = dialect_of(ledger)
    folders = {say.text(file.folder) for file in seen}
    where = f"AND folder IN ({', '.join(folders)})" if len(folders) <= _FOLDERS_MAX else ""
    found = query(
        f"""
        SELECT folder, shard, first_offset, last_offset
        FROM {{ledger}} AS ledger
        WHERE status IN ('taken', 'partly') {where}
          AND (`query` != '{batch.query}' OR `batch` < {batch.number})
        """,
        ledger=ledger,
    )
    for row in store.rows(found):
        known[row["folder"], row["shard"]].append((row["first_offset"], row["last_offset"]))
    return known


def _take_events(store: Store, here: Local | None, work: Work, planned: Plan) -> Plan:
    """Writes `events`. If a page of a file is damaged, finds it, and goes on without that file."""
    if here:
        here.copy(planned.read, work.batch)
        return planned
    try:
        store.append(events.TABLE, _exported(store, planned), work.batch)
    except SPARK_FAILURES:
        again = _plan(store, work, thoroughly=True)
        if len(again.bad) == len(planned.bad):
            raise
        if again.read:
            store.append(events.TABLE, _exported(store, again), work.batch)
        return again
    return planned


def _exported(store: Store, planned: Plan) -> DataFrame:
    """Returns the rows that are taken, as exported, for Spark."""
    return events.make(_rows_of(store, planned.read))


def _rows_of(store: Store, pieces: Sequence[Piece]) -> DataFrame:
    read = store.spark.read.schema(spark_schema())
    whole = [piece.file.path for piece in pieces if piece.is_whole]
    frames = [read.parquet(*whole)] if whole else []
    for piece in pieces:
        if piece.is_whole:
            continue
        rows = read.parquet(piece.file.path)
        if piece.spans is not None:
            offset = F.col("offset")
            rows = rows.where(
                reduce(lambda a, b: a | b, (offset.between(*span) for span in piece.spans))
            )
        if piece.until_us is not None:
            rows = rows.where(F.col("at") <= F.timestamp_micros(F.lit(piece.until_us)))
        frames.append(rows)
    return reduce(lambda a, b: a.unionByName(b), frames)


def _make_others(
    store: Tables[Rows], work: Work, planned: Plan, rows: Rows | None, tell: Callable[[str], None]
) -> None:
    """Makes all tables but `events`, of which `rows` are those of the batch."""
    spans = _spans(planned)
    if spans and rows is not None:
        _make_silver(store, work, rows, tell)
    store.add(files.TABLE, _ledger(work, planned), work.batch)
    if spans and rows is not None:
        gold = Gold(store, work.batch, spans).steps(work.objectives)
        made = (open_jobs.TABLE.name, lambda: _make_open_jobs(store, work, spans, rows))
        make_all([*gold[:2], made, *gold[2:]], tell)


def _make_silver(store: Tables[Rows], work: Work, rows: Rows, tell: Callable[[str], None]) -> None:
    tell("attempts and jobs")
    with ThreadPoolExecutor(_WRITERS) as pool:
        made = ((module.TABLE, module.make(rows)) for module in (attempts, jobs))
        for done in [pool.submit(store.append, *one, work.batch) for one in made]:
            done.result()


def _make_open_jobs(
    store: Tables[Rows], work: Work, spans: Sequence[tuple[int, int]], rows: Rows
) -> None:
    """Brings `open_jobs` up to date, which nothing else is made of."""
    # What opened at a moment ended at that moment or later, so earlier ends need not be read.
    first_us = min(low for low, _ in spans)
    later = [(first_us, work.now_us + history.AHEAD_US + 1)]
    ended = store.within(jobs.TABLE, "ended_at", later)
    still = open_jobs.make(store.read(open_jobs.TABLE), rows, ended)
    store.overwrite(open_jobs.TABLE, still, work.batch)


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


def _ledger(work: Work, planned: Plan) -> pa.Table:
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
    names = [column.name for column in files.TABLE.columns]
    columns = list(zip(*shown, strict=True)) if shown else [()] * len(names)
    typed = zip(columns, files.TABLE.columns, strict=True)
    arrays = [pa.array(column, _ARROW[known.type]) for column, known in typed]
    return pa.table(arrays, names=names)


def _time(us: int | None) -> datetime | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC)
