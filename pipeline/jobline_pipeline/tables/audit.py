"""Gold `audit`: who did what, and how many jobs it touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.tables.table import LONG, STRING, TIME, Column, Table, hour_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = Table(
    name="audit",
    layer="gold",
    what="One row per hour, principal, kind of event, queue and operation.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("principal", STRING, "Who asked for it; empty if the server knows nobody."),
        Column("event", STRING, "What was done: `pushed`, `cancelled`, `deleted` …"),
        Column("queue", STRING, "The queue; empty for what concerns none."),
        Column("operation_id", LONG, "The operation, as `jobline operations` lists it; or NULL."),
        Column("jobs", LONG, "How many events that were, one per job."),
        Column("first_at", TIME, "The first."),
        Column("last_at", TIME, "The last."),
    ),
    key=("hour", "principal", "event", "queue", "operation_id"),
    window="hour",
    grain=3600,
)


def make(events: DataFrame) -> DataFrame:
    """Takes `events` of whole hours; those that nobody asked for are left out."""
    asked = events.where(F.col("principal").isNotNull() | F.col("operation_id").isNotNull())
    done = asked.select(
        hour_of("at").alias("hour"),
        F.coalesce("principal", F.lit("")).alias("principal"),
        "event",
        F.coalesce("queue", F.lit("")).alias("queue"),
        "operation_id",
        "at",
    )
    return TABLE.conform(
        done.groupBy("hour", "principal", "event", "queue", "operation_id").agg(
            F.count("*").alias("jobs"),
            F.min("at").alias("first_at"),
            F.max("at").alias("last_at"),
        )
    )
