"""Silver `jobs`: one row per ended job, a filter of final events."""

from __future__ import annotations

from jobline_pipeline.sql import Rows, milliseconds
from jobline_pipeline.tables.table import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
)

TABLE = Table(
    name="jobs",
    layer="silver",
    what="One row per ended job. A job that was put back and ended again has a row for each end.",
    columns=(
        Column("shard", INT, "The shard of the queue."),
        Column("offset", LONG, "The event that ended it."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("job_id", LONG, "The job."),
        Column("group", STRING, "Its group, or NULL."),
        Column("priority", INT, "Its priority."),
        Column("pushed_at", TIME, "When it was stored."),
        Column("ready_at", TIME, "When it became ready for the last time."),
        Column("first_leased_at", TIME, "When it was handed out for the first time."),
        Column("leased_at", TIME, "When it was handed out for the last time; NULL if never."),
        Column("ended_at", TIME, "When it ended."),
        Column("outcome", STRING, "`completed`, `dead`, `cancelled`, `expired` or `deleted`."),
        Column("attempts", INT, "How many attempts it had."),
        Column("stalls", INT, "How many leases were lost."),
        Column("releases", INT, "How often it was given back."),
        Column("total_ms", DOUBLE, "From push to end."),
        Column("run_ms", DOUBLE, "Of its last hand-out."),
        Column("reason", STRING, "Why it ended so."),
        Column("error_type", STRING, "The class of the last error."),
        Column("error", STRING, "The message of the last error."),
        Column("parent_id", LONG, "The job that waits for this one."),
        Column("batch_id", LONG, "The batch that counts this job."),
        Column("payload_bytes", LONG, "Size of the payload."),
        Column("result_bytes", LONG, "Size of the result."),
        Column("date", DATE, "The day of `ended_at`, UTC."),
    ),
    key=("job_id", "offset"),
    partition="date",
)


def make(events: Rows) -> Rows:
    """Takes `events`; returns the jobs that ended in them."""
    return TABLE.made(
        f"""
        SELECT
          *,
          `at` AS ended_at,
          event AS outcome,
          {milliseconds("pushed_at", "`at`")} AS total_ms,
          {milliseconds("leased_at", "`at`")} AS run_ms
        FROM {{events}} AS events
        WHERE final
        """,
        events=events,
    )
