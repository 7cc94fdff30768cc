"""Gold `batches`: how far each batch of jobs is, how it went, and its stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.tables.table import DOUBLE, LONG, LONGS, STRING, TIME, Column, Table, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A straggler took this many times as long as half of the jobs of its batch.
STRAGGLER = 3.0
STRAGGLERS_SHOWN = 10

TABLE = Table(
    name="batches",
    layer="gold",
    what="One row per batch of which a job was pushed.",
    columns=(
        Column("batch_id", LONG, "The batch."),
        Column("queues", STRING, "The queues of its jobs, sorted, with commas between."),
        Column("jobs", LONG, "Jobs pushed into it."),
        Column("ended", LONG, "Of these, ended."),
        Column("completed", LONG, "Of these, completed."),
        Column("progress", DOUBLE, "The share that ended."),
        Column("first_pushed_at", TIME, "The first push."),
        Column("last_ended_at", TIME, "The last end so far."),
        Column("total_p50_ms", DOUBLE, "The median time from push to end."),
        Column("total_max_ms", DOUBLE, "The longest."),
        Column("straggler_count", LONG, f"Jobs that took over {STRAGGLER:g} times the median."),
        Column("stragglers", LONGS, f"The slowest of them, up to {STRAGGLERS_SHOWN}."),
    ),
    key=("batch_id",),
)


def make(pushed: DataFrame, jobs: DataFrame) -> DataFrame:
    """Takes `events` that pushed members of batches, and `jobs`: all members of these batches."""
    members = pushed.where(F.col("batch_id").isNotNull() & (F.col("event") == "pushed")).select(
        "batch_id", "job_id", "queue", F.col("at").alias("pushed_at")
    )
    ends = (
        jobs.where(F.col("batch_id").isNotNull())
        .groupBy("job_id")
        .agg(F.max_by(F.struct("outcome", "ended_at", "total_ms"), "offset").alias("end"))
    )
    known = members.join(ends, on="job_id", how="left").select("*", "end.*")
    sums = known.groupBy("batch_id").agg(
        F.array_join(F.array_sort(F.collect_set("queue")), ", ").alias("queues"),
        F.count("*").alias("jobs"),
        F.count("end").alias("ended"),
        F.count_if(F.col("outcome") == "completed").alias("completed"),
        F.min("pushed_at").alias("first_pushed_at"),
        F.max("ended_at").alias("last_ended_at"),
        F.percentile("total_ms", F.lit(0.5)).alias("total_p50_ms"),
        F.max("total_ms").alias("total_max_ms"),
        F.sort_array(
            F.collect_list(F.when(F.col("total_ms").isNotNull(), F.struct("total_ms", "job_id"))),
            asc=False,
        ).alias("slowest"),
    )
    slow = F.filter("slowest", lambda one: one["total_ms"] > F.col("total_p50_ms") * STRAGGLER)
    shown = sums.withColumn("slow", slow).select(
        "*",
        share(F.col("ended"), F.col("jobs")).alias("progress"),
        F.size("slow").alias("straggler_count"),
        F.slice(F.col("slow.job_id"), 1, STRAGGLERS_SHOWN).alias("stragglers"),
    )
    return TABLE.conform(shown)
