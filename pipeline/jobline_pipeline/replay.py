"""Replays: jobs that a statement of SQL chooses are pushed again.

A statement names jobs by `job_id`, over the tables, over `server_jobs` (the jobs that the server
still has) or over both. If it gives a `payload` and a `queue` these are pushed; else they are taken
from the server, with name, priority, group, headers, tags and content type. A job that the server
has no more, and whose payload was not exported, cannot be pushed: it is counted.

Each job that is pushed has the key `replay:<run id>:<job id>`, so a replay that was cut off is
repeated as it was: what is there is not pushed again, for the 24 hours in which a server knows a
key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from jobline_pipeline.problems import PipelineError
from jobline_pipeline.source import register

# What a job that is pushed again has of the first one, beside its payload, and the option of the
# sink that takes it from a column.
KEPT = {
    "name": "nameColumn",
    "priority": "priorityColumn",
    "group": "groupColumn",
    "headers": "headersColumn",
    "tags": "tagsColumn",
    "max_attempts": "maxAttemptsColumn",
    "content_type": "contentTypeColumn",
}
VIEW = "server_jobs"
# How many tasks push at once.
TASKS = 4


@contextmanager
def problems() -> Iterator[None]:
    """Raises the PipelineError of the source that is within an error of Spark."""
    try:
        yield
    except PySparkException as error:
        found = re.search(r"problems\.PipelineError: (.*)", str(error))
        if found is None:
            raise
        raise PipelineError(found[1]) from error


@dataclass(frozen=True, slots=True)
class Replay:
    """Jobs that may be pushed again. `missing`: how many were chosen whose payload is nowhere."""

    jobs: DataFrame
    missing: int
    run_id: str

    def counts(self) -> list[tuple[str, str, int]]:
        """Returns how many jobs of each queue and name there are: what a dry run shows."""
        name = sf.col("name") if "name" in self.jobs.columns else sf.lit("")
        grouped = self.jobs.groupBy("queue", sf.coalesce(name, sf.lit("")).alias("name")).count()
        return [tuple(row) for row in grouped.orderBy("queue", "name").collect()]

    def push(self, address: str, *, queue: str = "") -> None:
        """Pushes the jobs, into their own queues or all into one."""
        columns = {KEPT[name]: name for name in KEPT if name in self.jobs.columns}
        where = {"queue": queue} if queue else {"queueColumn": "queue"}
        # A task has a connection of its own: a shuffle leaves hundreds of tasks with few rows.
        jobs = self.jobs.coalesce(TASKS)
        writer = jobs.write.format("jobline").options(address=address, **where, **columns)
        writer.option("payloadColumn", "payload").option("keyColumn", "key").mode("append").save()


def view_of_server(spark: SparkSession, address: str, queues: Iterable[str] = ()) -> None:
    """Makes the view `server_jobs`; it is read from the server whenever a statement uses it."""
    register(spark)
    options = {"address": address, "queues": ",".join(queues)}
    frame = spark.read.format("jobline").options(**options).load()
    frame.createOrReplaceTempView(VIEW)


def plan(spark: SparkSession, statement: str, address: str, *, run_id: str = "") -> Replay:
    """Returns what a statement chooses, and pushes nothing. `run_id`: unless given, a digest of the
    statement. Raises PipelineError for a statement without `job_id`.
    """
    chosen = spark.sql(statement)
    if "job_id" not in chosen.columns:
        raise PipelineError(
            "the statement has to give job_id: SELECT job_id, queue FROM jobs WHERE …"
        )
    run = run_id or blake2b(statement.encode(), digest_size=6).hexdigest()
    if {"payload", "queue"} <= set(chosen.columns):
        found = chosen.where("payload IS NOT NULL").dropDuplicates(["job_id"])
    else:
        found = _on_server(spark, chosen, address)
    jobs = _as_pushed(found, run).cache()
    missing = chosen.select("job_id").distinct().count() - jobs.count()
    return Replay(jobs, missing, run)


def _on_server(spark: SparkSession, chosen: DataFrame, address: str) -> DataFrame:
    """Returns the chosen jobs as the server has them; only the queues that they name are read."""
    queues: set[str] = set()
    if "queue" in chosen.columns:
        queues = {row.queue for row in chosen.select("queue").distinct().collect() if row.queue}
    view_of_server(spark, address, sorted(queues))
    ids = chosen.select("job_id").distinct()
    return spark.table(VIEW).join(ids, "job_id", "left_semi")


def _as_pushed(found: DataFrame, run: str) -> DataFrame:
    """Returns what is pushed of each job, null where it had nothing of its own."""
    own: dict[str, Column] = {name: sf.col(name) for name in KEPT if name in found.columns}
    for name in ("name", "group", "content_type"):
        if name in own:
            own[name] = sf.nullif(own[name], sf.lit(""))
    if "priority" in own:
        # A job of a group has no priority, and 0 is what it has without one.
        grouped = own["group"].isNotNull() if "group" in own else sf.lit(False)
        own["priority"] = sf.when(~grouped, sf.nullif(own["priority"], sf.lit(0)))
    for name in ("headers", "tags"):
        if name in own:
            own[name] = sf.when(sf.size(own[name]) > 0, own[name])
    key = sf.concat(sf.lit(f"replay:{run}:"), sf.col("job_id").cast("string"))
    columns = [column.alias(name) for name, column in own.items()]
    return found.select("job_id", "queue", "payload", key.alias("key"), *columns)
