"""Gold `versions`: failures and run times by name of job and version of worker.

It answers which deploy broke a job: `compared` puts the versions of a name side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.schemas import FAILURES
from jobline_pipeline.sql import Rows, hour_of, one_of, share
from jobline_pipeline.tables.table import (
    BINARY,
    DOUBLE,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = Table(
    name="versions",
    layer="gold",
    what="One row per hour, queue, name of job and version of worker.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("worker_version", STRING, "The version that the worker reported; empty if none."),
        Column("first_at", TIME, "When the first of its hand-outs ended."),
        Column("attempts", LONG, "Hand-outs that ended."),
        Column("failed", LONG, "Of these, failed or lost."),
        Column("run_ms", DOUBLE, "The run time of them all."),
        Column("run_sketch", BINARY, "KLL sketch (float) of run times in ms, mergeable."),
    ),
    key=("hour", "queue", "name", "worker_version"),
    window="hour",
    grain=3600,
)


def make(attempts: Rows) -> Rows:
    """Takes `attempts` of whole hours."""
    return TABLE.made(
        f"""
        WITH ended AS (
          SELECT
            {hour_of("ended_at")} AS hour, queue, name, outcome, run_ms, ended_at,
            coalesce(worker_version, '') AS worker_version
          FROM {{attempts}} AS attempts
        )
        SELECT
          hour,
          queue,
          name,
          worker_version,
          min(ended_at) AS first_at,
          count(*) AS attempts,
          count_if(outcome IN {one_of(FAILURES)}) AS failed,
          sum(run_ms) AS run_ms,
          kll_sketch_agg_float(CAST(run_ms AS float)) AS run_sketch
        FROM ended
        GROUP BY hour, queue, name, worker_version
        """,
        attempts=attempts,
    )


def compared(versions: DataFrame) -> DataFrame:
    """Takes `versions`; returns one row per queue, name and version over all hours."""
    merged = versions.groupBy("queue", "name", "worker_version").agg(
        F.min("first_at").alias("first_at"),
        F.sum("attempts").alias("attempts"),
        F.sum("failed").alias("failed"),
        F.sum("run_ms").alias("run_ms"),
        F.kll_merge_agg_float("run_sketch").alias("run_sketch"),
    )
    p95 = F.kll_sketch_get_quantile_float("run_sketch", F.lit(0.95)).cast("double")
    return merged.select(
        "queue",
        "name",
        "worker_version",
        "first_at",
        "attempts",
        F.expr(share("failed", "attempts")).alias("failure_rate"),
        (F.col("run_ms") / F.col("attempts")).alias("run_mean_ms"),
        p95.alias("run_p95_ms"),
    )
