"""Silver `open_jobs`: jobs that were pushed, or put back, and have not ended since."""

from __future__ import annotations

from jobline_pipeline.schemas import OPENINGS
from jobline_pipeline.sql import Rows, one_of
from jobline_pipeline.tables.table import INT, LONG, STRING, TIME, Column, Table

TABLE = Table(
    name="open_jobs",
    layer="silver",
    what="One row per job that has not ended yet.",
    columns=(
        Column("shard", INT, "The shard of the queue."),
        Column("offset", LONG, "The event that made it live."),
        Column("queue", STRING, "The queue."),
        Column("name", STRING, "The name of the job."),
        Column("job_id", LONG, "The job."),
        Column("group", STRING, "Its group, or NULL."),
        Column("priority", INT, "Its priority."),
        Column("opened_at", TIME, "When it was pushed or put back."),
        Column("run_at", TIME, "Not before this time, where one was asked for."),
        Column("parent_id", LONG, "The job that waits for this one."),
        Column("batch_id", LONG, "The batch that counts this job."),
    ),
    key=("job_id",),
)


def make(opened: Rows, events: Rows, ended: Rows) -> Rows:
    """Takes rows of this table, which may have ended, new `events`, and `jobs`; returns those that
    are still open.

    An end counts only if it came after the opening: a job that was put back has ended before.
    """
    names = ", ".join(f"`{column.name}`" for column in TABLE.columns)
    # Two numbers of each end fit in memory per partition: a table of hashes spares sorting both.
    return TABLE.made(
        f"""
        WITH openings AS (
          SELECT {names} FROM {{opened}} AS opened
          UNION ALL
          SELECT {names}
          FROM (SELECT *, `at` AS opened_at FROM {{events}} AS events) AS events
          WHERE event IN {one_of(OPENINGS)}
        )
        SELECT /*+ SHUFFLE_HASH(ended) */ openings.*
        FROM openings
        ANTI JOIN {{ended}} AS ended
          ON openings.job_id = ended.job_id AND openings.`offset` < ended.`offset`
        """,
        opened=opened,
        events=events,
        ended=ended,
    )
