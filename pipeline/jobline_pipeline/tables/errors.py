"""Gold `errors`: failures of each minute, grouped by what their messages have in common.

Numbers, ids, addresses and paths are taken out of a message, so that "order 812 in /data/812.db"
and "order 9 in /data/9.db" are the same error. Of an attempt that was lost nobody sent a message:
it has one of ours, by the reason that the server gives.
"""

from __future__ import annotations

import re

from jobline_pipeline.schemas import FAILURES
from jobline_pipeline.sql import Dialect, Function, Rows, dialect_of, minute_of, one_of
from jobline_pipeline.tables.table import LONG, STRING, TIME, Column, Table

# Longer messages differ in their tail; what they have in common is at their beginning.
MESSAGE_MAX = 300
# In this order: an id within a path is gone with the path, a number within an id with the id.
# Java and Python read these patterns alike.
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


def make(attempts: Rows) -> Rows:
    """Takes `attempts` of whole minutes; returns their failures, grouped."""
    message = f"coalesce(error, {_of_reason()}, '')"
    return TABLE.made(
        f"""
        WITH failed AS (
          SELECT
            {minute_of("ended_at")} AS minute, queue, name,
            coalesce(error_type, '') AS error_type,
            {dialect_of(attempts).call(NORMALISED, message)} AS message,
            outcome, ended_at, error, job_id, `offset`
          FROM {{attempts}} AS attempts
          WHERE outcome IN {one_of(FAILURES)}
        )
        SELECT
          minute,
          queue,
          name,
          error_type,
          message,
          count(*) AS failures,
          count_if(outcome = 'dead') AS dead,
          min(ended_at) AS first_at,
          max(ended_at) AS last_at,
          max_by(error, (ended_at, `offset`)) AS example,
          max_by(job_id, (ended_at, `offset`)) AS example_job_id
        FROM failed
        GROUP BY minute, queue, name, error_type, message
        """,
        attempts=attempts,
    )


def _of_reason() -> str:
    """Returns what a reason means, in words; NULL if there is none."""
    said = (f"WHEN '{reason}' THEN '{words}'" for reason, words in _WITHOUT_MESSAGE.items())
    return f"CASE reason {' '.join(said)} ELSE reason END"


def normalised(message: str) -> str:
    """Returns a message without what differs between two of the same error."""
    shown = message[:MESSAGE_MAX]
    for pattern, word in _COMPILED:
        shown = pattern.sub(word, shown)
    return shown.strip(" ")


def _normalised_by_spark(message: str) -> str:
    shown = f"substring({message}, 1, {MESSAGE_MAX})"
    for pattern, word in _TAKEN_OUT:
        shown = f"regexp_replace({shown}, {Dialect().text(pattern)}, '{word}')"
    return f"trim({shown})"


_COMPILED = [(re.compile(pattern, re.ASCII), word) for pattern, word in _TAKEN_OUT]
NORMALISED = Function("normalised", _normalised_by_spark, normalised, ("VARCHAR",), "VARCHAR")
