"""Gold `audit`: who did what, and how many jobs it touched."""

from __future__ import annotations

from jobline_pipeline.sql import Rows, hour_of
from jobline_pipeline.tables.table import LONG, STRING, TIME, Column, Table

TABLE = Table(
    name="audit",
    layer="gold",
    what="One row per hour, principal, kind of event, queue and operation.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("principal", STRING, "Who asked for it; empty if the server knows nobody."),
        Column("event", STRING, "What was done: `pushed`, `cancelled`, `deleted` …"),
        Column("queue", STRING, "The queue; empty for what concerns none."),
        Column("operation_id", LONG, "The operation, as `jobline operations` lists it; or NULL."),
        Column("jobs", LONG, "How many events that were, one per job."),
        Column("first_at", TIME, "The first."),
        Column("last_at", TIME, "The last."),
    ),
    key=("hour", "principal", "event", "queue", "operation_id"),
    window="hour",
    grain=3600,
)


def make(events: Rows) -> Rows:
    """Takes `events` of whole hours; those that nobody asked for are left out."""
    return TABLE.made(
        f"""
        SELECT
          hour,
          principal,
          event,
          queue,
          operation_id,
          count(*) AS jobs,
          min(`at`) AS first_at,
          max(`at`) AS last_at
        FROM (
          SELECT
            {hour_of("`at`")} AS hour, coalesce(principal, '') AS principal, event,
            coalesce(queue, '') AS queue, operation_id, `at`
          FROM {{events}} AS events
          WHERE principal IS NOT NULL OR operation_id IS NOT NULL
        ) AS asked
        GROUP BY hour, principal, event, queue, operation_id
        """,
        events=events,
    )
