"""Gold `fairness`: which groups of a queue got how much work done, and who waited for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.tables.table import DOUBLE, LONG, STRING, TIME, Column, Table, hour_of, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Rows are for the groups with the most work; the index counts the others of a queue and hour too.
GROUPS_SHOWN = 100

TABLE = Table(
    name="fairness",
    layer="gold",
    what=f"One row per hour, queue and group; the {GROUPS_SHOWN} busiest of a queue and hour.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("queue", STRING, "The queue."),
        Column("group", STRING, "The group."),
        Column("attempts", LONG, "Hand-outs that ended."),
        Column("run_ms", DOUBLE, "Their run time."),
        Column("run_share", DOUBLE, "Its share of the run time of all groups."),
        Column("wait_mean_ms", DOUBLE, "The mean time from ready to handed out."),
        Column("wait_max_ms", DOUBLE, "The longest of these."),
        Column("groups", LONG, "How many groups the queue had in this hour."),
        Column(
            "jain",
            DOUBLE,
            "Jain's index of run times of all groups: 1 is equal, 1/n is one for all.",
        ),
    ),
    key=("hour", "queue", "group"),
    window="hour",
    grain=3600,
)


def make(attempts: DataFrame) -> DataFrame:
    """Takes `attempts` of whole hours; those without a group are left out."""
    by_group = (
        attempts.where(F.col("group").isNotNull())
        .select(hour_of("ended_at").alias("hour"), "queue", "group", "run_ms", "wait_ms")
        .groupBy("hour", "queue", "group")
        .agg(
            F.count("*").alias("attempts"),
            F.sum("run_ms").alias("run_ms"),
            F.avg("wait_ms").alias("wait_mean_ms"),
            F.max("wait_ms").alias("wait_max_ms"),
        )
    )
    members = F.struct("run_ms", "group", "attempts", "wait_mean_ms", "wait_max_ms")
    by_queue = by_group.groupBy("hour", "queue").agg(
        F.count("*").alias("groups"),
        F.sum("run_ms").alias("all_ms"),
        F.sum(F.col("run_ms") * F.col("run_ms")).alias("squares"),
        F.slice(F.sort_array(F.collect_list(members), asc=False), 1, GROUPS_SHOWN).alias("busiest"),
    )
    jain = share(F.col("all_ms") * F.col("all_ms"), F.col("groups") * F.col("squares"))
    shown = by_queue.select(
        "hour", "queue", "groups", "all_ms", jain.alias("jain"), F.explode("busiest").alias("one")
    )
    return TABLE.conform(
        shown.select("*", "one.*").withColumn("run_share", share(F.col("run_ms"), F.col("all_ms")))
    )
