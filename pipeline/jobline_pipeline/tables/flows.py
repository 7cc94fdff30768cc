"""Gold `flows`: how long a flow of jobs took, and which of its jobs it waited for.

A job waits for its children and for the jobs that it depends on. Of those, the one that ended last
is *critical*: had it been faster, the waiting job would have begun earlier. The critical path goes
from the root of a flow to its critical job, to the critical job of that one, and so on. The *slack*
of a flow is how much faster the critical job of the root could have been before another one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.tables.table import (
    DOUBLE,
    INT,
    LONG,
    LONGS,
    STRING,
    TIME,
    Column,
    Table,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

# Jobs of a critical path beyond this many are not followed.
PATH_MAX = 5

TABLE = Table(
    name="flows",
    layer="gold",
    what="One row per root of a flow that ended: a job that waited for others, and no job for it.",
    columns=(
        Column("job_id", LONG, "The root."),
        Column("queue", STRING, "Its queue."),
        Column("name", STRING, "Its name."),
        Column("ended_at", TIME, "When it ended."),
        Column("outcome", STRING, "How it ended."),
        Column("waits_for", LONG, "How many jobs it waited for itself."),
        Column("total_ms", DOUBLE, "From its push to its end."),
        Column("critical_path", LONGS, f"The root, its critical job, and so on; up to {PATH_MAX}."),
        Column("path_jobs", INT, "How many jobs that are."),
        Column("path_run_ms", DOUBLE, "The run time of the last hand-outs on the path."),
        Column("run_share", DOUBLE, "path_run_ms / total_ms: the rest was waiting and retries."),
        Column("slack_ms", DOUBLE, "How much earlier than the critical job the next one ended."),
        Column("critical_name", STRING, "The name of the root's critical job."),
    ),
    key=("job_id",),
    window="ended_at",
)


def make(
    jobs: DataFrame,
    pushed: DataFrame,
    keep: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> DataFrame:
    """Takes `jobs` (all that the flows may have) and `events` that have `depends_on`.

    `keep` is given what is used several times, so that it may compute that once.
    """
    edges = keep(_edges(jobs, pushed))
    awaited = edges.select(F.col("awaited_id").alias("job_id"))
    # Of the jobs, only those that are in a flow: few, as a rule.
    members = edges.select("job_id").unionByName(awaited).distinct()
    in_flows = jobs.join(members, on="job_id", how="left_semi")
    one = F.struct("queue", "name", "ended_at", "outcome", "total_ms", "run_ms")
    ended = keep(in_flows.groupBy("job_id").agg(F.max_by(one, "offset").alias("job")))
    links = keep(_links(edges, ended))
    waited_for = edges.select(F.col("awaited_id").alias("job_id")).distinct()
    path = links.join(waited_for, on="job_id", how="left_anti")
    roots = path.join(ended, on="job_id", how="inner").select(
        "job_id", "job", "waits_for", "slack_ms", "critical_id", "critical_name",
        F.array("job_id", "critical_id").alias("critical_path"),
        (F.coalesce("job.run_ms", F.lit(0.0)) + F.col("critical_run_ms")).alias("path_run_ms"),
    )  # fmt: skip
    following = links.select(
        F.col("job_id").alias("critical_id"),
        F.col("critical_id").alias("next_id"),
        F.col("critical_run_ms").alias("next_run_ms"),
    )
    for _ in range(PATH_MAX - 2):
        roots = _one_further(roots, following)
    total = F.col("job.total_ms")
    return TABLE.conform(
        roots.select(
            "*", "job.*",
            F.size("critical_path").alias("path_jobs"),
            share(F.col("path_run_ms"), total).alias("run_share"),
        )
    )  # fmt: skip


def _edges(jobs: DataFrame, pushed: DataFrame) -> DataFrame:
    """Returns (job_id, awaited_id): who waits for whom."""
    children = jobs.where(F.col("parent_id").isNotNull()).select(
        F.col("parent_id").alias("job_id"), F.col("job_id").alias("awaited_id")
    )
    depends = pushed.where(F.col("depends_on").isNotNull()).select(
        "job_id", F.explode("depends_on").alias("awaited_id")
    )
    return children.unionByName(depends).distinct()


def _links(edges: DataFrame, ended: DataFrame) -> DataFrame:
    """Returns a row per waiting job: its critical job, and by how much that one was the last."""
    awaited = edges.join(
        ended.select(F.col("job_id").alias("awaited_id"), "job"), on="awaited_id", how="inner"
    )
    one = F.struct("job.ended_at", "awaited_id", "job.name", "job.run_ms")
    ordered = awaited.groupBy("job_id").agg(
        F.sort_array(F.collect_list(one), asc=False).alias("ends"), F.count("*").alias("waits_for")
    )
    last, second = F.col("ends")[0], F.get("ends", F.lit(1))
    slack = (F.unix_micros(last["ended_at"]) - F.unix_micros(second["ended_at"])) / 1000
    return ordered.select(
        "job_id",
        "waits_for",
        last["awaited_id"].alias("critical_id"),
        last["name"].alias("critical_name"),
        F.coalesce(last["run_ms"], F.lit(0.0)).alias("critical_run_ms"),
        slack.alias("slack_ms"),
    )


def _one_further(roots: DataFrame, following: DataFrame) -> DataFrame:
    """Follows each path by one job, where its last job waited for another."""
    there = F.col("next_id").isNotNull()
    return roots.join(following, on="critical_id", how="left").select(
        "job_id", "job", "waits_for", "slack_ms", "critical_name",
        F.col("next_id").alias("critical_id"),
        F.when(there, F.concat("critical_path", F.array("next_id")))
        .otherwise(F.col("critical_path"))
        .alias("critical_path"),
        (F.col("path_run_ms") + F.coalesce("next_run_ms", F.lit(0.0))).alias("path_run_ms"),
    )  # fmt: skip
