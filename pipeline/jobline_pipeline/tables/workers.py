"""Gold `workers`: how busy each worker was in each hour, and how it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.schemas import FAILURES
from jobline_pipeline.tables.table import DOUBLE, LONG, STRING, TIME, Column, Table, hour_of, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = Table(
    name="workers",
    layer="gold",
    what="One row per worker and hour in which it ended an attempt.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("worker", STRING, "The worker."),
        Column("worker_version", STRING, "The last version that it reported."),
        Column("attempts", LONG, "Hand-outs that ended."),
        Column("completed", LONG, "Of these, completed."),
        Column("failed", LONG, "Of these, failed or lost."),
        Column("stalled", LONG, "Of these, lost: the lease ran out."),
        Column("busy_ms", DOUBLE, "The run time of them all."),
        Column("busy_share", DOUBLE, "busy_ms per hour: 2.5 is two and a half jobs at a time."),
        Column("per_minute", DOUBLE, "Hand-outs that ended, per minute."),
        Column("failure_rate", DOUBLE, "The share that failed or was lost."),
    ),
    key=("hour", "worker"),
    window="hour",
    grain=3600,
)


def make(attempts: DataFrame) -> DataFrame:
    """Takes `attempts` of whole hours. A run time belongs to the hour in which it ended."""
    ended = attempts.where(F.col("worker").isNotNull()).select(
        hour_of("ended_at").alias("hour"),
        "worker",
        "worker_version",
        "outcome",
        "run_ms",
        "ended_at",
    )
    sums = ended.groupBy("hour", "worker").agg(
        F.max_by("worker_version", "ended_at").alias("worker_version"),
        F.count("*").alias("attempts"),
        F.count_if(F.col("outcome") == "completed").alias("completed"),
        F.count_if(F.col("outcome").isin(*FAILURES)).alias("failed"),
        F.count_if(F.col("outcome") == "stalled").alias("stalled"),
        F.sum("run_ms").alias("busy_ms"),
    )
    return TABLE.conform(
        sums.select(
            "*",
            (F.col("busy_ms") / 3_600_000).alias("busy_share"),
            (F.col("attempts") / 60).alias("per_minute"),
            share(F.col("failed"), F.col("attempts")).alias("failure_rate"),
        )
    )
