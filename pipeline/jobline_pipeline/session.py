"""Starts Spark with Delta Lake, or joins the session that is there.

Under spark-submit, in a notebook and with Spark Connect (SPARK_REMOTE) the session of the platform
is used, with its own jars and memory. Otherwise Spark starts in this process, on all cores, with
the jars of `jars` and the Java of `java`.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from jobline_pipeline.jars import installed_jars
from jobline_pipeline.java import find_java, java_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a laptop gives: enough for 50 million events at once.
MEMORY = "4g"
_LOGGING = Path(__file__).with_name("log4j2.properties")

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Options of any session, local or not; they change no result.
TUNING = {
    "spark.sql.session.timeZone": "UTC",
    # Partial aggregates of sketches stay in hash maps: there are some thousand minutes in a batch.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
    # A write to a few dates keeps a file open for each, rather than sort all rows by date.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A laptop that slept would have lost its own executor, whose heartbeats stopped meanwhile.
    "spark.network.timeout": "24h",
    # Of Spark's 200, most would be empty; adaptive execution joins those of small batches.
    "spark.sql.shuffle.partitions": "24",
    # Files are listed here: a job with a task per file takes longer than the listing.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
    # VACUUM lists a table with so many tasks, of which Spark would start 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


def open_session(
    name: str = "jobline-pipeline",
    *,
    master: str | None = None,
    memory: str = MEMORY,
    options: dict[str, str] | None = None,
) -> SparkSession:
    """Returns a session with Delta Lake; the caller stops it.

    `master` is `local[*]` unless given, `memory` the heap of a local driver, `options` are Spark's
    own and win over ours. Raises PipelineError if Java or the jars are missing.
    """
    builder = SparkSession.builder.appName(name)
    if not _is_provided():
        builder = launched(name, master=master or "local[*]", memory=memory)
        builder.config("spark.jars", ",".join(str(jar) for jar in installed_jars()))
    # A server of Spark Connect was started with Delta Lake: a client cannot add it.
    delta = {} if "SPARK_REMOTE" in os.environ or is_remote() else DELTA
    for key, value in {**delta, **TUNING, **(options or {})}.items():
        builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def session(
    name: str = "jobline-pipeline", *, master: str | None = None, memory: str = MEMORY
) -> Iterator[SparkSession]:
    """A session for one command; it is stopped at the end, unless the platform provided it."""
    provided = _is_provided()
    spark = open_session(name, master=master, memory=memory)
    try:
        yield spark
    finally:
        if not provided:
            spark.stop()


def launched(name: str, *, master: str, memory: str) -> SparkSession.Builder:
    """Returns a builder that starts Spark in this process; finds Java for it."""
    os.environ["JAVA_HOME"] = str(find_java(java_cache()))
    # Tasks that run Python (the source `jobline`) take the interpreter of this environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    flags = f"-XX:+UseParallelGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    settings = {
        **_LOCAL,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": flags,
        "spark.local.dir": os.environ.get("SPARK_LOCAL_DIRS") or "/tmp",  # noqa: S108 - as Spark's
    }
    for key, value in settings.items():
        builder.config(key, value)
    return builder


def _is_provided() -> bool:
    """Whether the platform starts Spark: spark-submit, Spark Connect, or an open session."""
    if "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    return SparkSession.getActiveSession() is not None
