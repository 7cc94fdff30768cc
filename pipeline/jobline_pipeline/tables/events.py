"""Bronze `events`: the exported rows, typed, each once, with the date of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.schemas import EVENTS
from jobline_pipeline.tables.table import DATE, Column, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = Table(
    name="events",
    layer="bronze",
    what="Every event that the server exported, once.",
    columns=(
        *(Column(field.name, field.type, field.meaning) for field in EVENTS),
        Column("date", DATE, "The day of `at`, UTC."),
    ),
    key=("shard", "offset"),
    partition="date",
    skipped_by=("shard", "offset", "at", "pushed_at", "job_id", "batch_id"),
)


def make(exported: DataFrame) -> DataFrame:
    """Returns exported rows (columns of `schemas.EVENTS`), without repeats, as this table."""
    return TABLE.conform(exported.withColumn("date", F.to_date("at")))
