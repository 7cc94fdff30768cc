"""Keeps tables small and quick: joins files, deletes files, deletes rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.tables import batches, files, flows, open_jobs
from jobline_pipeline.tables.all import TABLES

if TYPE_CHECKING:
    from jobline_pipeline.store import Store
    from jobline_pipeline.tables.table import Table

# By which time rows of a table without a window or a date grow old.
_TIME_OF = {files.TABLE.name: "last_at", batches.TABLE.name: "last_ended_at"}


def optimize(store: Store, tell: Callable[[str], None]) -> Iterator[tuple[str, int, int]]:
    """Joins small files; yields each table with its number of files before and after."""
    for table, delta in _tables(store):
        tell(f"joining files of {table.name}")
        before = _files(delta)
        delta.optimize().executeCompaction()
        yield table.name, before, _files(delta)


def vacuum(store: Store, hours: int, tell: Callable[[str], None]) -> None:
    """Deletes files that no version of the last `hours` needs."""
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    # Delta refuses less than a week; our writers are done within a batch, and the user said so.
    store.spark.conf.set(check, "false")
    try:
        for table, delta in _tables(store):
            tell(f"deleting files of {table.name}")
            delta.vacuum(hours)
    finally:
        store.spark.conf.unset(check)


def retain(
    store: Store, before: datetime, before_gold: datetime, tell: Callable[[str], None]
) -> Iterator[tuple[str, int]]:
    """Deletes rows before a time; yields each table with the number of rows deleted.

    Whole days go, so that no row of bronze and silver has to be written again. Open jobs stay.
    """
    for table, delta in _tables(store):
        if table is open_jobs.TABLE:
            continue
        tell(f"deleting rows of {table.name}")
        limit = before_gold if table.layer == "gold" else before
        if table.partition:
            old = F.col(table.partition) < F.lit(limit.date())
        else:
            old = F.col(_time_of(table)) < F.lit(limit)
        delta.delete(old)
        did = delta.history(1).select("operation", "operationMetrics").collect()[0]
        deleted = did["operationMetrics"].get("numDeletedRows", 0)
        yield table.name, int(deleted) if did["operation"] == "DELETE" else 0


def _time_of(table: Table) -> str:
    if table is flows.TABLE or table.window is None:
        return _TIME_OF.get(table.name, "last_at" if table.window is None else "ended_at")
    return table.window


def _tables(store: Store) -> Iterator[tuple[Table, DeltaTable]]:
    if is_remote():
        raise PipelineError(
            "Spark Connect does not look after tables: run this with spark-submit, or without "
            "SPARK_REMOTE."
        )
    for table in TABLES:
        if store.exists(table):
            yield table, DeltaTable.forPath(store.spark, store.path(table))


def _files(delta: DeltaTable) -> int:
    return int(delta.detail().select("numFiles").collect()[0][0])
