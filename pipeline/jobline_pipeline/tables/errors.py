"""Gold `errors`: failures of each minute, grouped by what their messages have in common.

Numbers, ids, addresses and paths are taken out of a message, so that "order 812 in /data/812.db"
and "order 9 in /data/9.db" are the same error. Of an attempt that was lost nobody sent a message:
it has one of ours, by the reason that the server gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.schemas import FAILURES
from jobline_pipeline.tables.table import LONG, STRING, TIME, Column, Table, minute_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

# Longer messages differ in their tail; what they have in common is at their beginning.
MESSAGE_MAX = 300
# In this order: an id within a path is gone with the path, a number within an id with the id.
_TAKEN_OUT = (
    (r"https?://[^\s'\"]+", "<url>"),
    (r"[\w.+-]+@[\w-]+\.[\w.]+", "<email>"),
    (r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.@%+-]+){2,}", "<path>"),
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
    (r"\b(?:0x)?(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{6,}\b", "<id>"),
    (r"\d+(?:[.:]\d+)*", "<n>"),
    (r"\s+", " "),
)

# What to read where nobody sent a message. A reason that is not here is shown as it is.
_WITHOUT_MESSAGE = {
    "WORKER_LOST": "worker lost: it disconnected and did not come back",
    "STALLED": "lease ran out: nothing was heard from the worker in time",
    "INTERRUPTED": "interrupted: it was lost while it ran, and must not run twice",
    "TIMEOUT": "took longer than its timeout",
    # These say what became of the job, not what went wrong.
    "EXPLICIT_FAIL": "",
    "MAX_ATTEMPTS_EXCEEDED": "",
    "RETRY_UNTIL_PASSED": "",
}

TABLE = Table(
    name="errors",
    layer="gold",
    what="One row per minute, queue, name, class and message of a failure.",
    columns=(
        Column("minute", TIME, "The begin of the minute."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("error_type", STRING, "The class of the error; empty if none was given."),
        Column("message", STRING, "The message without numbers, ids, addresses and paths."),
        Column("failures", LONG, "How many attempts failed so."),
        Column("dead", LONG, "How many jobs died of it."),
        Column("first_at", TIME, "The first of them."),
        Column("last_at", TIME, "The last of them."),
        Column("example", STRING, "The message of the last one, as it was; NULL if none was sent."),
        Column("example_job_id", LONG, "The job of that message."),
    ),
    key=("minute", "queue", "name", "error_type", "message"),
    window="minute",
)


def make(attempts: DataFrame) -> DataFrame:
    """Takes `attempts` of whole minutes; returns their failures, grouped."""
    failed = attempts.where(F.col("outcome").isin(*FAILURES)).select(
        minute_of("ended_at").alias("minute"),
        "queue",
        "name",
        F.coalesce("error_type", F.lit("")).alias("error_type"),
        normalised(F.coalesce("error", _of_reason(), F.lit(""))).alias("message"),
        "outcome",
        "ended_at",
        "error",
        "job_id",
        "offset",
    )
    last = F.max_by(F.struct("error", "job_id"), F.struct("ended_at", "offset"))
    grouped = failed.groupBy("minute", "queue", "name", "error_type", "message").agg(
        F.count("*").alias("failures"),
        F.count_if(F.col("outcome") == "dead").alias("dead"),
        F.min("ended_at").alias("first_at"),
        F.max("ended_at").alias("last_at"),
        last.alias("last"),
    )
    return TABLE.conform(
        grouped.select(
            "*",
            F.col("last.error").alias("example"),
            F.col("last.job_id").alias("example_job_id"),
        )
    )


def _of_reason() -> SparkColumn:
    """Returns what a reason means, in words; NULL if there is none."""
    said = F.col("reason")
    for reason, words in _WITHOUT_MESSAGE.items():
        said = F.when(F.col("reason") == reason, F.lit(words)).otherwise(said)
    return said


def normalised(message: SparkColumn) -> SparkColumn:
    """Returns a message without what differs between two of the same error."""
    shown = F.substring(message, 1, MESSAGE_MAX)
    for pattern, word in _TAKEN_OUT:
        shown = F.regexp_replace(shown, pattern, word)
    return F.trim(shown)
