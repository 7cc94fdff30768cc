"""Gold `fairness`: which groups of a queue got how much work done, and who waited for whom."""

from __future__ import annotations

from jobline_pipeline.sql import Rows, hour_of, share
from jobline_pipeline.tables.table import DOUBLE, LONG, STRING, TIME, Column, Table

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


def make(attempts: Rows) -> Rows:
    """Takes `attempts` of whole hours; those without a group are left out."""
    return TABLE.made(
        f"""
        WITH by_group AS (
          SELECT
            hour,
            queue,
            `group`,
            count(*) AS attempts,
            sum(run_ms) AS run_ms,
            avg(wait_ms) AS wait_mean_ms,
            max(wait_ms) AS wait_max_ms
          FROM (
            SELECT *, {hour_of("ended_at")} AS hour
            FROM {{attempts}} AS attempts
            WHERE `group` IS NOT NULL
          ) AS ended
          GROUP BY hour, queue, `group`
        ),
        compared AS (
          SELECT
            *,
            row_number() OVER (
              PARTITION BY hour, queue ORDER BY run_ms DESC, `group` DESC
            ) AS place,
            count(*) OVER (PARTITION BY hour, queue) AS `groups`,
            sum(run_ms) OVER (PARTITION BY hour, queue) AS all_ms,
            sum(run_ms * run_ms) OVER (PARTITION BY hour, queue) AS squares
          FROM by_group
        )
        SELECT
          *,
          {share("run_ms", "all_ms")} AS run_share,
          {share("all_ms * all_ms", "(`groups` * squares)")} AS jain
        FROM compared
        WHERE place <= {GROUPS_SHOWN}
        """,
        attempts=attempts,
    )
