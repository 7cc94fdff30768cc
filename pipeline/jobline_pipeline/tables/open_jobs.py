"""Silver `open_jobs`: jobs that were pushed, or put back, and have not ended since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.schemas import OPENINGS
from jobline_pipeline.tables.table import INT, LONG, STRING, TIME, Column, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE = Table(
    name="open_jobs",
    layer="silver",
    what="One row per job that has not ended yet.",
    columns=(
        Column("shard", INT, "The shard of the queue."),
        Column("offset", LONG, "The event that made it live."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("job_id", LONG, "The job."),
        Column("group", STRING, "Its group, or NULL."),
        Column("priority", INT, "Its priority."),
        Column("opened_at", TIME, "When it was pushed or put back."),
        Column("run_at", TIME, "Not before this time, where one was asked for."),
        Column("parent_id", LONG, "The job that waits for this one."),
        Column("batch_id", LONG, "The batch that counts this job."),
    ),
    key=("job_id",),
)


def openings(events: DataFrame) -> DataFrame:
    """Takes `events`; returns those that make a job live, as rows of this table."""
    opened = events.where(F.col("event").isin(*OPENINGS))
    return TABLE.conform(opened.withColumn("opened_at", F.col("at")))


def make(opened: DataFrame, jobs: DataFrame) -> DataFrame:
    """Takes rows of this table, which may have ended, and `jobs`; returns those still open.

    An end counts only if it came after the opening: a job that was put back has ended before.
    """
    ended = jobs.select(F.col("job_id").alias("ended_id"), F.col("offset").alias("ended_offset"))
    is_over = (F.col("job_id") == F.col("ended_id")) & (F.col("offset") < F.col("ended_offset"))
    # Two numbers of each end fit in memory per partition: a table of hashes spares sorting both.
    return TABLE.conform(opened.join(ended.hint("shuffle_hash"), is_over, how="left_anti"))
