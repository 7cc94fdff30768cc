"""Silver `attempts`: one row per hand-out that ended, a filter of events that end one."""

from __future__ import annotations

from jobline_pipeline.schemas import ENDINGS
from jobline_pipeline.sql import Rows, milliseconds, one_of
from jobline_pipeline.tables.table import (
    BOOLEAN,
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
    name="attempts",
    layer="silver",
    what="One row per hand-out of a job that ended, however it ended.",
    columns=(
        Column("shard", INT, "The shard of the queue."),
        Column("offset", LONG, "The event that ended it."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("job_id", LONG, "The job."),
        Column("group", STRING, "Its group, or NULL."),
        Column("priority", INT, "Its priority."),
        Column("delivery", LONG, "The hand-out."),
        Column("attempt", INT, "The number of the attempt, from 1."),
        Column("worker", STRING, "The worker that had it."),
        Column("worker_version", STRING, "The version of that worker."),
        Column("ready_at", TIME, "When the job became ready for it."),
        Column("leased_at", TIME, "When it was handed out."),
        Column("ended_at", TIME, "When it ended."),
        Column("outcome", STRING, "`completed`, `retrying`, `dead`, `stalled`, `released` …"),
        Column("final", BOOLEAN, "Whether the job ended with it."),
        Column("wait_ms", DOUBLE, "From ready to handed out."),
        Column("run_ms", DOUBLE, "From handed out to its end."),
        Column("reason", STRING, "Why it was released, or lost."),
        Column("error_type", STRING, "The class of the error."),
        Column("error", STRING, "The message of the error."),
        Column("parent_id", LONG, "The parent of the job."),
        Column("batch_id", LONG, "The batch of the job."),
        Column("date", DATE, "The day of `ended_at`, UTC."),
    ),
    key=("job_id", "delivery"),
    partition="date",
)


def make(events: Rows) -> Rows:
    """Takes `events`; returns the hand-outs that ended in them."""
    return TABLE.made(
        f"""
        SELECT
          *,
          `at` AS ended_at,
          event AS outcome,
          {milliseconds("ready_at", "leased_at")} AS wait_ms,
          {milliseconds("leased_at", "`at`")} AS run_ms
        FROM {{events}} AS events
        WHERE event IN {one_of(ENDINGS)} AND leased_at IS NOT NULL
        """,
        events=events,
    )
